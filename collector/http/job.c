/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's workers do what may block. A job holds its connection's memory until it is done, not its
 * socket: a peer that leaves is gone at once. Desks are lent to one job at a time and kept for the
 * next; there are never more than workers. Of long jobs one runs at a time; the others stand in line. */
#include <stdlib.h>

#include "collector/http/private.h"

/* --- a worker's turn --------------------------------------------------------------------------- */

/* False: the server is closing. session is NULL where there is no memory for one. */
static bool turn_begin(struct tc_http *http, struct tc_query_session **out_desk) {
  bool welcome;

  *out_desk = NULL;
  pthread_mutex_lock(&http->lock);
  welcome = !http->jobs_refused;
  if (welcome) http->jobs_running++;
  if (welcome && http->desk_count > 0) *out_desk = http->sessions[--http->desk_count];
  pthread_mutex_unlock(&http->lock);
  if (welcome && *out_desk == NULL) *out_desk = tc_query_session_new(&http->env.archive);
  return welcome;
}

/* While jobs_running counts us the store is open, so a session too many goes first. */
static void turn_end(struct tc_http *http, struct tc_query_session *session) {
  bool kept = false;

  pthread_mutex_lock(&http->lock);
  if (session != NULL && http->desk_count < sizeof http->sessions / sizeof http->sessions[0]) {
    http->sessions[http->desk_count++] = session;
    kept = true;
  }
  pthread_mutex_unlock(&http->lock);
  if (!kept) tc_query_session_free(session);
  pthread_mutex_lock(&http->lock);
  if (--http->jobs_running == 0) pthread_cond_broadcast(&http->idle);
  pthread_mutex_unlock(&http->lock);
}

static void on_work(uv_work_t *work) {
  struct tc__http_job *job = work->data;
  struct tc_query_session *session;

  if (!turn_begin(job->http, &session)) return;
  if (session != NULL)
    job->run(job, session);
  else
    tc__answer_fail_rc(&job->answer, TB_NOMEM, "");
  turn_end(job->http, session);
}

/* --- on the loop ------------------------------------------------------------------------------- */

static void begin_next_long(struct tc_http *http);

static void on_done(uv_work_t *work, int status) {
  struct tc__http_job *job = work->data;
  struct tc__http_conn *c = job->conn;
  struct tc_http *http = job->http;
  bool gone = c != NULL && c->tls == NULL, was_long = job->is_long;

  if (c != NULL) c->job = NULL;
  job->done(job, status == 0 && !gone && !job->http->closing);
  tc__answer_fini(&job->answer);
  free(job);
  if (gone) tc__conn_free(c);
  if (was_long) begin_next_long(http);
}

static bool begin(struct tc__http_job *job) {
  return uv_queue_work(job->http->env.tls->uv, &job->work, on_work, on_done) == 0;
}

/* uv_queue_work() fails for a call without a function alone. */
static void begin_next_long(struct tc_http *http) {
  struct tc__http_job *next = TAILQ_FIRST(&http->long_jobs);

  http->long_job = next != NULL;
  if (next == NULL) return;
  TAILQ_REMOVE(&http->long_jobs, next, in_line);
  if (!begin(next)) abort();
}

static bool begin_long(struct tc__http_job *job) {
  struct tc_http *http = job->http;

  if (http->long_job) {
    TAILQ_INSERT_TAIL(&http->long_jobs, job, in_line);
    return true;
  }
  http->long_job = begin(job);
  return http->long_job;
}

bool tc__job_is_wanted(struct tc__http_job *job) {
  return !atomic_load_explicit(&job->called_off, memory_order_relaxed) &&
         !atomic_load_explicit(&job->http->jobs_refused, memory_order_relaxed);
}

bool tc__job_begin(struct tc_http *http, struct tc__http_conn *c, const struct tc__http_job *like) {
  struct tc__http_job *job = malloc(sizeof *job);

  if (job == NULL) return false;
  *job = *like;
  tc__answer_init(&job->answer, like->answer.type);
  job->http = http;
  job->conn = c;
  job->work.data = job;
  if (!(job->is_long ? begin_long(job) : begin(job))) {
    free(job);
    return false;
  }
  if (c != NULL) {
    c->job = job;
    c->busy = true;
  }
  return true;
}

void tc__job_answer(struct tc__http_job *job, bool wanted) {
  if (wanted) tc__conn_answer(job->conn, &job->answer);
}

void tc__conn_work(struct tc__http_conn *c, const char *type,
                   void (*run)(struct tc__http_job *job, struct tc_query_session *session)) {
  const struct tc__http_job job = { .run = run, .done = tc__job_answer, .answer.type = type };

  if (!tc__job_begin(c->http, c, &job)) tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}

void tc__jobs_end(struct tc_http *http) {
  pthread_mutex_lock(&http->lock);
  http->jobs_refused = true;
  while (http->jobs_running > 0) pthread_cond_wait(&http->idle, &http->lock);
  pthread_mutex_unlock(&http->lock);
  while (http->desk_count > 0) tc_query_session_free(http->sessions[--http->desk_count]);
}
