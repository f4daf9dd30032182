/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred verdicts. A generation for which there was no room is not analysed, but users need to know whether it is whole: it is
 * ordered by itself once no stream has work, one generation at a time, in steps like those of job.c.
 *
 * The jobs of job.c cannot do this, even without analyses. They hold all bytes of a generation, for which they may wait until
 * other streams end their work (has_room_for_bytes()), while late work waits until no stream has work: a deadlock. So this file
 * reads through a small buffer. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "collector/analysis/private.h"
#include "online/trace/reader.h"
#include "proto/meta.pb-c.h"

enum { READ_BYTES = 256 << 10, RUN_EVENTS = 512 };

struct tc__late_job {
  STAILQ_ENTRY(tc__late_job) next;
  struct tc_reply *stored;
};

struct tc__late_work { /* for the first job */
  struct tb_mem mem;
  struct to_reader *reader;
  struct tb_diag diag;
  struct tc_verdict verdict;
  int fd;
  uint64_t have;  /* bytes of the generation read so far */
  size_t n, used; /* bytes in the buffer; those of them that were fed */
  bool runs;      /* the reader has events to order */
  bool is_over;   /* all bytes were fed */
  unsigned char bytes[READ_BYTES];
};

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct tc__late_work *work = self;

  (void)gen;
  if (work->verdict.last_ns == 0) work->verdict.first_ns = events[0].time;
  work->verdict.last_ns = events[n - 1].time;
  return TB_OK;
}

bool tc__late_add(struct tc_scheduler *u, struct tc_reply *stored) {
  struct tc__late_job *job = u->late.n < TC__LATE_MAX ? malloc(sizeof *job) : NULL;

  if (job == NULL) return false;
  job->stored = stored;
  STAILQ_INSERT_TAIL(&u->late.jobs, job, next);
  u->late.n++;
  return true;
}

static void drop_work(struct tc_scheduler *u) {
  struct tc__late_work *work = u->late.work;

  if (work == NULL) return;
  to_reader_free(work->reader);
  if (work->fd >= 0) close(work->fd);
  free(work);
  u->late.work = NULL;
}

static void drop_first(struct tc_scheduler *u) {
  struct tc__late_job *job = STAILQ_FIRST(&u->late.jobs);

  STAILQ_REMOVE_HEAD(&u->late.jobs, next);
  u->late.n--;
  tc_reply_free(job->stored);
  free(job);
}

void tc__late_drop(struct tc_scheduler *u) {
  drop_work(u);
  while (!STAILQ_EMPTY(&u->late.jobs)) drop_first(u);
}

static tb_rc begin_work(struct tc_scheduler *u, const struct tc_reply *stored) {
  struct tc__late_work *work = malloc(sizeof *work);
  struct to_limits limits = { .generation_bytes_max = u->env.config->agents_generation_bytes_max };
  unsigned char header[TC__SCHEDULER_HEADER_BYTES];
  size_t used;

  if (work == NULL) return TB_NOMEM;
  memset(work, 0, offsetof(struct tc__late_work, bytes));
  u->late.work = work;
  work->fd = u->env.open_file(u->env.files, stored);
  work->verdict.offset = TB_NO_OFFSET;
  tb_mem_init(&work->mem, tb_mem_libc, NULL, u->env.config->agents_memory_max);
  if (work->fd < 0) return TB_IO; /* deleted by retention */
  if (stored->len > limits.generation_bytes_max) return TB_BUDGET;
  if (tc_read_all(work->fd, header, sizeof header, 0) != 0) return TB_CORRUPT;
  TB_TRY(to_reader_new(&work->mem, &limits, TO_READER_PAST_ANNOTATIONS,
                       (struct to_event_sink){ work, on_events }, &work->diag, &work->reader));
  TB_TRY(to_reader_begin(work->reader));
  return to_reader_feed(work->reader, header, sizeof header, &used);
}

static tb_rc read_more(struct tc__late_work *work, const struct tc_reply *stored) {
  uint64_t left = stored->len - work->have;
  size_t n = left < READ_BYTES ? (size_t)left : READ_BYTES;

  if (tc_read_all(work->fd, work->bytes, n, stored->offset + work->have) != 0) return TB_CORRUPT;
  work->have += n;
  work->n = n;
  work->used = 0;
  return TB_OK;
}

/* Returns TB_END when the generation is ordered completely. */
static tb_rc continue_work(struct tc__late_work *work, const struct tc_reply *stored) {
  size_t used = 0;
  tb_rc rc;

  if (work->runs) {
    rc = to_reader_run(work->reader, RUN_EVENTS);
    if (rc == TB_OK) work->runs = false;
    return rc == TB_AGAIN ? TB_OK : rc;
  }
  if (work->is_over) return TB_END;
  if (work->used == work->n && work->have < stored->len) TB_TRY(read_more(work, stored));
  if (work->used < work->n) {
    rc = to_reader_feed(work->reader, work->bytes + work->used, work->n - work->used, &used);
    work->used += used;
  } else {
    rc = to_reader_finish(work->reader);
    work->is_over = true;
  }
  work->runs = rc == TB_AGAIN;
  return rc == TB_AGAIN ? TB_OK : rc;
}

/* Returns false if the store has no room now. */
static bool submit_verdict(struct tc_scheduler *u, const struct tc_reply *stored, tb_rc rc) {
  struct tc__late_work *work = u->late.work;
  struct tc_verdict *v = &work->verdict;

  v->stream = stored->stream;
  v->gen = stored->gen;
  if (work->reader != NULL) v->events = to_reader_written(work->reader);
  const struct tb_diag *wrong = rc == TB_OK ? to_reader_misannotated(work->reader) : NULL;
  tc__verdict_say(v, wrong != NULL ? wrong->rc : rc, wrong != NULL ? wrong : &work->diag, stored);
  return v->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING || tc__verdict_submit(u, v);
}

tb_rc tc__late_step(struct tc_scheduler *u) {
  const struct tc__late_job *job = STAILQ_FIRST(&u->late.jobs);

  if (job == NULL) return TB_END;
  if (!u->late.is_judged) {
    u->late.rc = u->late.work == NULL ? begin_work(u, job->stored)
                                      : continue_work(u->late.work, job->stored);
    if (u->late.rc == TB_OK) return TB_OK;
    if (u->late.rc == TB_END) u->late.rc = TB_OK;
    u->late.is_judged = true;
  }
  if (u->late.work != NULL && !submit_verdict(u, job->stored, u->late.rc)) return TB_AGAIN;
  u->late.is_judged = false;
  drop_work(u);
  drop_first(u);
  return TB_OK;
}
