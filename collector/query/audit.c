/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies the archive as `tracectl verify ARCHIVE` does, but inside the daemon. */
#include <string.h>

#include "archive/audit/audit.h"
#include "collector/query/private.h"

enum { PROBLEMS_MAX = 1000 };

struct findings {
  struct tc_query_session *session;
  const struct tc_query_watch *watch;
  char **problems; /* PROBLEMS_MAX, in the session's arena */
  size_t count;
};

static void note_problem(void *self, const char *text) {
  struct findings *f = self;

  if (f->count == PROBLEMS_MAX) return;
  if (tb_arena_copy(&f->session->arena, text, strlen(text) + 1, &f->problems[f->count]) == TB_OK)
    f->count++;
}

static void note_progress(void *self, uint64_t done_bytes, uint64_t total_bytes) {
  const struct tc_query_watch *watch = ((struct findings *)self)->watch;

  watch->progress(watch->self, done_bytes, total_bytes);
}

static bool is_stopping(void *self) {
  struct findings *f = self;

  return tc__query_is_stopping(f->session->query) || f->watch->stop(f->watch->self);
}

static tb_rc run_audit(struct findings *findings, struct tb_diag *diag, struct tc_audited *out) {
  struct tc_audit_sink sink = {
    .self = findings, .problem = note_problem, .progress = note_progress, .stop = is_stopping
  };
  int state_fd = tc_store_dirfd(findings->session->query->env.store);

  return tc_audit(state_fd, true, &sink, diag, out);
}

static Tracecollect__V1__VerifiedBooks *put_books(const struct tc_audited_accounting *accounting,
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

static tb_rc answer_verify(struct tc_query_session *s, const struct tc_query_watch *watch,
                           struct tb_diag *diag, Tracecollect__V1__VerifyReply **out) {
  struct findings findings = { .session = s, .watch = watch };
  struct tc_audited seen = { 0 };
  Tracecollect__V1__VerifiedBooks *books;
  Tracecollect__V1__VerifyReply *reply;

  TB_TRY(tb_arena_alloc(&s->arena, 2 * sizeof *books, &books));
  TB_TRY(tb_arena_alloc(&s->arena, PROBLEMS_MAX * sizeof *findings.problems, &findings.problems));
  TB_TRY(tb_arena_alloc(&s->arena, sizeof *reply, &reply));
  TB_TRY(tc__query_settle(s, diag)); /* so that acked records are in files and counted */
  TB_TRY(run_audit(&findings, diag, &seen));

  tracecollect__v1__verify_reply__init(reply);
  reply->segments = seen.segments;
  reply->bytes = seen.bytes;
  reply->expired = seen.expired;
  reply->fresh = seen.fresh;
  reply->open_runs = seen.open_runs;
  reply->open_generations = seen.open_generations;
  reply->closed = put_books(&seen.closed, &books[0]);
  reply->live_streams = seen.live_streams;
  reply->live = put_books(&seen.live, &books[1]);
  reply->problem_count = seen.problems;
  reply->n_problems = findings.count;
  reply->problems = findings.problems;
  *out = reply;
  return TB_OK;
}

tb_rc tc_query_verify(struct tc_query_session *s, const struct tc_query_watch *watch,
                      struct tb_diag *diag, Tracecollect__V1__VerifyReply **out) {
  tb_arena_reset(&s->arena);
  return tc__query_end(s, answer_verify(s, watch, diag, out), diag);
}
