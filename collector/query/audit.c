/* SPDX-License-Identifier: Apache-2.0 */
/* verify for a reader: what `tracectl verify ARCHIVE` does, in the process that holds the archive. */
#include <string.h>

#include "archive/audit.h"
#include "collector/query/private.h"

enum { PROBLEMS_MAX = 1000 };

struct findings {
  struct tc__worker *worker;
  char **problems; /* PROBLEMS_MAX, in the worker's arena */
  size_t count;
};

static void note_problem(void *self, const char *text) {
  struct findings *f = self;

  if (f->count == PROBLEMS_MAX) return;
  if (tb_arena_copy(&f->worker->arena, text, strlen(text) + 1, &f->problems[f->count]) == TB_OK)
    f->count++;
}

static bool is_stopping(void *self) {
  struct findings *f = self;
  struct tc_archive *a = f->worker->archive;

  pthread_mutex_lock(&a->lock);
  bool stopping = a->stopping;
  pthread_mutex_unlock(&a->lock);
  return stopping;
}

static bool begin(struct tc_archive *a) {
  pthread_mutex_lock(&a->lock);
  bool busy = a->verifying;
  a->verifying = true;
  pthread_mutex_unlock(&a->lock);
  return !busy;
}

static void end(struct tc_archive *a) {
  pthread_mutex_lock(&a->lock);
  a->verifying = false;
  pthread_mutex_unlock(&a->lock);
}

static tb_rc look(struct tc__worker *w, bool rebuild, struct findings *findings,
                  struct tb_diag *diag, struct tc_audited *out) {
  struct tc_audit_sink sink = { .self = findings, .problem = note_problem, .stop = is_stopping };
  int state_fd = tc_store_dirfd(w->archive->env.store);
  uint64_t listed;

  if (rebuild) TB_TRY(tc_audit_rebuild(state_fd, &sink, diag, &listed));
  return tc_audit(state_fd, true, &sink, diag, out);
}

static void say_closed(const struct tc_audited_accounting *accounting,
                       Tracecollect__V1__VerifyReply *reply) {
  reply->closed_streams = accounting->streams;
  reply->produced_batches = accounting->produced.batches;
  reply->produced_bytes = accounting->produced.bytes;
  reply->archived_batches = accounting->archived.batches;
  reply->archived_bytes = accounting->archived.bytes;
  reply->taken_batches = accounting->taken.batches;
  reply->taken_bytes = accounting->taken.bytes;
  reply->lost_batches = accounting->lost.batches;
  reply->lost_bytes = accounting->lost.bytes;
}

static Tracecollect__V1__VerifiedBooks *say_living(const struct tc_audited_accounting *accounting,
                                                   Tracecollect__V1__VerifiedBooks *out) {
  tracecollect__v1__verified_books__init(out);
  out->streams = accounting->streams;
  out->produced_batches = accounting->produced.batches;
  out->produced_bytes = accounting->produced.bytes;
  out->archived_batches = accounting->archived.batches;
  out->archived_bytes = accounting->archived.bytes;
  out->taken_batches = accounting->taken.batches;
  out->taken_bytes = accounting->taken.bytes;
  out->lost_batches = accounting->lost.batches;
  out->lost_bytes = accounting->lost.bytes;
  out->open_batches = accounting->open.batches;
  out->open_bytes = accounting->open.bytes;
  out->spooled_batches = accounting->spooled.batches;
  out->spooled_bytes = accounting->spooled.bytes;
  return out;
}

tb_rc tc__archive_verify(struct tc__worker *w, const Tracecollect__V1__VerifyRequest *ask,
                         struct tb_diag *diag, Tracecollect__V1__VerifyReply **out) {
  struct findings findings = { .worker = w };
  struct tc_audited seen = { 0 };
  Tracecollect__V1__VerifiedBooks *living;
  Tracecollect__V1__VerifyReply *reply;

  TB_TRY(tb_arena_take(&w->arena, sizeof *living, &living));
  TB_TRY(tb_arena_take(&w->arena, PROBLEMS_MAX * sizeof *findings.problems, &findings.problems));
  TB_TRY(tb_arena_take(&w->arena, sizeof *reply, &reply));
  TB_TRY(tc__archive_settle(w, diag)); /* what is acked is in files, and counted */
  if (!begin(w->archive)) return tb_fail(diag, TB_REFUSED, "another verification is under way");
  tb_rc rc = look(w, ask->rebuild, &findings, diag, &seen);
  end(w->archive);
  if (rc != TB_OK) return rc;

  tracecollect__v1__verify_reply__init(reply);
  reply->segments = seen.segments;
  reply->bytes = seen.bytes;
  reply->expired = seen.expired;
  reply->fresh = seen.fresh;
  reply->open_runs = seen.open_runs;
  reply->open_generations = seen.open_generations;
  say_closed(&seen.closed, reply);
  reply->live_streams = seen.live_streams;
  reply->live = say_living(&seen.live, living);
  reply->problem_count = seen.problems;
  reply->n_problems = findings.count;
  reply->problems = findings.problems;
  *out = reply;
  return TB_OK;
}
