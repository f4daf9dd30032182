/* SPDX-License-Identifier: Apache-2.0 */
/* Long jobs, which may take an hour: one request starts a job, others poll it. A job that nobody polls for
 * http.job_expire is cancelled, or its result dropped.
 *
 * The loop owns a job; its worker uses only the atomic fields and writes json and packed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "collector/http/private.h"

struct tc__http_long {
  LIST_ENTRY(tc__http_long) all;
  struct tc_http *http;
  uint64_t id, owner;
  uint64_t asked_ms; /* last poll */
  bool called_off;   /* cancelled: polls get 404 */
  bool ended;        /* json and packed are written */
  bool end_seen;
  atomic_bool stop;
  atomic_ullong done_bytes, total_bytes;
  struct tb_mem mem;
  struct tb_buf json, packed; /* the result as a Job message */
};

/* --- on a worker ------------------------------------------------------------------------------- */

static bool is_stopped(void *self) {
  const struct tc__http_long *job = self;

  return atomic_load_explicit(&job->stop, memory_order_relaxed) ||
         atomic_load_explicit(&job->http->jobs_refused, memory_order_relaxed);
}

static void note_progress(void *self, uint64_t done_bytes, uint64_t total_bytes) {
  struct tc__http_long *job = self;

  atomic_store_explicit(&job->done_bytes, done_bytes, memory_order_relaxed);
  atomic_store_explicit(&job->total_bytes, total_bytes, memory_order_relaxed);
}

static void fill_job(const struct tc__http_long *job, char id[TC__ID_HEX + 1],
                     Tracecollect__V1__Job *out) {
  tc__write_id(job->id, id);
  out->id = id;
  out->done_bytes = atomic_load_explicit(&job->done_bytes, memory_order_relaxed);
  out->total_bytes = atomic_load_explicit(&job->total_bytes, memory_order_relaxed);
}

static void write_end(struct tc__http_long *job, tb_rc rc, const char *why,
                      Tracecollect__V1__VerifyReply *verify) {
  static char done[] = "done", failed[] = "failed";
  Tracecollect__V1__Job end = TRACECOLLECT__V1__JOB__INIT;
  char id[TC__ID_HEX + 1];

  fill_job(job, id, &end);
  end.state = rc == TB_OK ? done : failed;
  if (rc == TB_OK) {
    end.verify = verify;
  } else {
    end.code = (char *)(uintptr_t)tb_rc_name(rc); /* packing only reads it */
    end.error = (char *)(uintptr_t)why;
  }
  tc__put_message(&job->json, false, &end.base);
  tc__put_message(&job->packed, true, &end.base);
}

static void run_verify(struct tc__http_job *work, struct tc_query_session *session) {
  struct tc__http_long *job = work->self;
  const struct tc_query_watch watch = { job, is_stopped, note_progress };
  Tracecollect__V1__VerifyReply *verify = NULL;
  struct tb_diag diag;

  if (is_stopped(job)) return;
  tb_diag_clear(&diag);
  tb_rc rc = tc_query_verify(session, &watch, &diag, &verify);
  write_end(job, rc, diag.text, verify);
}

/* --- on the loop ------------------------------------------------------------------------------- */

static const char unknown[] =
    "no such job: it was called off, or not asked for within http.job_expire, or "
    "the collector was restarted";

static void long_free(struct tc__http_long *job) {
  LIST_REMOVE(job, all);
  job->http->longs--;
  tb_buf_fini(&job->json);
  tb_buf_fini(&job->packed);
  free(job);
}

static void answer(struct tc__http_conn *c, struct tc__http_long *job, int status) {
  static char running[] = "running";
  Tracecollect__V1__Job said = TRACECOLLECT__V1__JOB__INIT;
  bool packed = tc__wants_protobuf(c);
  const struct tb_buf *end = packed ? &job->packed : &job->json;
  char id[TC__ID_HEX + 1];
  struct tc__http_answer a;

  tc__answer_init(&a, NULL);
  tc__answer_type(&a, packed, said.base.descriptor);
  a.status = status;
  if (status == 202)
    snprintf(a.fields, sizeof a.fields, "Location: /api/v1/jobs/%016" PRIx64 "\r\n", job->id);
  if (job->ended) {
    job->end_seen = true;
    tb_buf_add(&a.body, end->data, end->len);
    if (end->rc != TB_OK) a.body.rc = end->rc;
  } else {
    fill_job(job, id, &said);
    said.state = running;
    tc__put_message(&a.body, packed, &said.base);
  }
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

/* Answers the polls of the job whose wait ends at at_ms or before. */
static void answer_polls(struct tc__http_long *job, uint64_t at_ms) {
  for (struct tc__http_conn *c = job->http->first, *next; c != NULL; c = next) {
    next = c->next;
    if (c->polled != job) continue;
    job->asked_ms = uv_now(job->http->env.tls->uv);
    if (at_ms < c->poll_until_ms) continue;
    c->polled = NULL;
    if (job->called_off)
      tc__conn_fail(c, 404, unknown);
    else
      answer(c, job, 200);
  }
}

static void call_off(struct tc__http_long *job) {
  job->called_off = true;
  atomic_store(&job->stop, true);
  answer_polls(job, UINT64_MAX);
  if (job->ended) long_free(job);
}

static void worked(struct tc__http_job *work, bool wanted) {
  struct tc__http_long *job = work->self;

  (void)wanted;
  if (job->json.len == 0) write_end(job, TB_NOMEM, tb_rc_text(TB_NOMEM), NULL); /* no session */
  job->ended = true;
  if (job->called_off)
    long_free(job);
  else
    answer_polls(job, UINT64_MAX);
}

void tc__longs_tick(struct tc_http *http) {
  uint64_t at_ms = uv_now(http->env.tls->uv);

  for (struct tc__http_long *job = LIST_FIRST(&http->long_jobs), *next; job != NULL; job = next) {
    next = LIST_NEXT(job, all);
    if (job->called_off) continue;
    answer_polls(job, at_ms);
    if (at_ms - job->asked_ms < http->env.limits.job_expire_ms) continue;
    if (!job->end_seen) tc_metric_add(&http->env.metrics->http_jobs_left_total, 1);
    call_off(job);
  }
}

void tc__longs_close(struct tc_http *http) {
  for (struct tc__http_long *job = LIST_FIRST(&http->long_jobs), *next; job != NULL; job = next) {
    next = LIST_NEXT(job, all);
    if (!job->called_off) call_off(job);
  }
}

/* --- questions --------------------------------------------------------------------------------- */

/* Returns NULL after an error answer. */
static struct tc__http_long *find_job(struct tc__http_conn *c) {
  struct tc__http_long *job = NULL;
  uint64_t id;

  if (tc__read_id(c, &id)) LIST_FOREACH(job, &c->http->long_jobs, all)
  if (job->id == id && !job->called_off) break;
  if (job == NULL)
    tc__conn_fail(c, 404, unknown);
  else if (job->owner != c->owner)
    tc__conn_fail(c, 403, "the job is another reader's");
  else
    return job;
  return NULL;
}

static size_t count_of(const struct tc_http *http, uint64_t owner) {
  const struct tc__http_long *job;
  size_t n = 0;

  LIST_FOREACH(job, &http->long_jobs, all) n += !job->called_off && job->owner == owner;
  return n;
}

/* Drops the oldest job whose result was fetched, so that clients that never send DELETE can start another. owner NULL: of
 * any owner. */
static bool forget_one(struct tc_http *http, const uint64_t *owner) {
  struct tc__http_long *job, *found = NULL;

  LIST_FOREACH(job, &http->long_jobs, all)
  if (job->end_seen && (owner == NULL || job->owner == *owner) &&
      (found == NULL || job->asked_ms <= found->asked_ms))
    found = job;
  if (found != NULL) call_off(found);
  return found != NULL;
}

static struct tc__http_long *begin(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  struct tc__http_long *job = calloc(1, sizeof *job);
  const struct tc__http_job work = {
    .run = run_verify, .done = worked, .self = job, .owner = c->owner, .lane = TC__LANE_AUDIT
  };

  if (job == NULL) return NULL;
  *job = (struct tc__http_long){ .http = http,
                                 .owner = c->owner,
                                 .asked_ms = uv_now(http->env.tls->uv) };
  tb_mem_init(&job->mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tb_buf_init(&job->json, &job->mem);
  tb_buf_init(&job->packed, &job->mem);
  if (getrandom(&job->id, sizeof job->id, 0) != sizeof job->id ||
      !tc__job_begin(http, NULL, &work)) {
    free(job);
    return NULL;
  }
  LIST_INSERT_HEAD(&http->long_jobs, job, all);
  http->longs++;
  return job;
}

void tc__verify_begin(struct tc__http_conn *c) {
  struct tc__http_question q;

  if (!tc__question_read(c, &q)) return;
  tc__question_fini(&q);
  if (count_of(c->http, c->owner) >= c->http->env.limits.owner_jobs_max &&
      !forget_one(c->http, &c->owner)) {
    tc__conn_fail(c, 429, "http.owner_jobs_max is reached: end one that you have");
    return;
  }
  if (c->http->longs >= c->http->env.limits.jobs_max && !forget_one(c->http, NULL)) {
    tc__conn_fail(c, 503, "http.jobs_max is reached");
    return;
  }
  struct tc__http_long *job = begin(c);
  if (job != NULL)
    answer(c, job, 202);
  else
    tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}

void tc__job_poll(struct tc__http_conn *c) {
  struct tc__http_question q;

  if (!tc__question_read(c, &q)) return;
  uint32_t wait_ms = ((Tracecollect__V1__JobRequest *)q.message)->wait_ms;
  tc__question_fini(&q);
  struct tc__http_long *job = find_job(c);
  if (job == NULL) return;
  c->polled = job;
  c->poll_until_ms = uv_now(c->http->env.tls->uv) + wait_ms;
  answer_polls(job, job->ended ? UINT64_MAX : uv_now(c->http->env.tls->uv));
}

void tc__job_end(struct tc__http_conn *c) {
  struct tc__http_long *job = find_job(c);
  struct tc__http_answer a;

  if (job == NULL) return;
  call_off(job);
  tc__answer_init(&a, "application/json");
  a.status = 204;
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}
