/* SPDX-License-Identifier: Apache-2.0 */
/* Work that may block is done by libuv's workers. A job keeps its connection's memory until the job is done, but not the
 * socket, which is closed as soon as the peer leaves. A query session is used by one job at a time and then reused; there
 * are at most as many as workers. Jobs wait in lanes, so that one kind does not delay another. */
#include <stdio.h>
#include <stdlib.h>

#include "collector/http/private.h"

/* --- a worker's turn --------------------------------------------------------------------------- */

/* Returns false if the server is closing. *out_session is NULL if a session cannot be allocated. */
static bool turn_begin(struct tc_http *http, struct tc_query_session **out_session) {
  bool welcome;

  *out_session = NULL;
  pthread_mutex_lock(&http->lock);
  welcome = !http->jobs_refused;
  if (welcome) http->jobs_running++;
  if (welcome && http->session_count > 0) *out_session = http->sessions[--http->session_count];
  pthread_mutex_unlock(&http->lock);
  if (welcome && *out_session == NULL) *out_session = tc_query_session_new(http->env.query);
  return welcome;
}

/* The store stays open while jobs_running counts this job: a surplus session is freed before. */
static void turn_end(struct tc_http *http, struct tc_query_session *session) {
  bool kept = false;

  pthread_mutex_lock(&http->lock);
  if (session != NULL && http->session_count < sizeof http->sessions / sizeof http->sessions[0]) {
    http->sessions[http->session_count++] = session;
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

  if (!tc__job_is_wanted(job) || !turn_begin(job->http, &session)) return;
  if (session != NULL)
    job->run(job, session);
  else
    tc__answer_fail_rc(&job->answer, TB_NOMEM, "");
  turn_end(job->http, session);
}

/* --- lanes ------------------------------------------------------------------------------------- */

enum { QUICK = 2, LONG = 1, HEALTH = 1, WAIT = 4, AUDIT = 1 };

static const unsigned workers[TC__LANES] = {
  [TC__LANE_QUICK] = QUICK, [TC__LANE_LONG] = LONG,   [TC__LANE_HEALTH] = HEALTH,
  [TC__LANE_WAIT] = WAIT,   [TC__LANE_AUDIT] = AUDIT,
};

void tc_http_set_workers(void) {
  char number[4];

  _Static_assert(QUICK + LONG + HEALTH + WAIT + AUDIT == TC_HTTP_WORKERS, "one for each");
  snprintf(number, sizeof number, "%d", TC_HTTP_WORKERS);
  setenv("UV_THREADPOOL_SIZE", number, 1);
}

/* Returns the turn after that of the owner's last waiting job. */
static uint64_t next_turn(const struct tc__http_lane *lane, uint64_t owner) {
  const struct tc__http_job *job;
  uint64_t turn = lane->turn;

  TAILQ_FOREACH(job, &lane->waiting, in_line)
  if (job->owner == owner) turn = job->turn;
  return turn + 1;
}

static void wait_in_lane(struct tc__http_lane *lane, struct tc__http_job *job) {
  struct tc__http_job *after;

  job->turn = next_turn(lane, job->owner);
  job->waits = true;
  TAILQ_FOREACH(after, &lane->waiting, in_line)
  if (after->turn > job->turn) break;
  if (after != NULL)
    TAILQ_INSERT_BEFORE(after, job, in_line);
  else
    TAILQ_INSERT_TAIL(&lane->waiting, job, in_line);
}

static void on_done(uv_work_t *work, int status);

/* uv_queue_work() fails only without a function. */
static void begin_waiting(struct tc_http *http, enum tc__http_lane_kind kind) {
  struct tc__http_lane *lane = &http->lanes[kind];

  while (lane->running < workers[kind] && !TAILQ_EMPTY(&lane->waiting)) {
    struct tc__http_job *job = TAILQ_FIRST(&lane->waiting);

    TAILQ_REMOVE(&lane->waiting, job, in_line);
    job->waits = false;
    lane->turn = job->turn;
    lane->running++;
    if (uv_queue_work(http->env.tls->uv, &job->work, on_work, on_done) != 0) abort();
  }
}

/* --- on the loop ------------------------------------------------------------------------------- */

/* Ends a job; frees its connection, too, if that was closed meanwhile. */
static void finish(struct tc__http_job *job, bool done) {
  struct tc__http_conn *c = job->conn;
  bool gone = c != NULL && c->tls == NULL;

  if (c != NULL) c->job = NULL;
  job->done(job, done && !gone && !job->http->closing);
  tc__answer_fini(&job->answer);
  free(job);
  if (gone) tc__conn_free(c);
}

static void on_done(uv_work_t *work, int status) {
  struct tc__http_job *job = work->data;
  struct tc_http *http = job->http;
  enum tc__http_lane_kind lane = job->lane;

  http->lanes[lane].running--;
  finish(job, status == 0);
  begin_waiting(http, lane);
}

void tc__job_call_off(struct tc__http_job *job) {
  atomic_store(&job->called_off, true);
  if (!job->waits) return;
  TAILQ_REMOVE(&job->http->lanes[job->lane].waiting, job, in_line);
  finish(job, false);
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
  if (c != NULL) job->owner = c->owner;
  job->work.data = job;
  if (c != NULL) {
    c->job = job;
    c->busy = true;
  }
  wait_in_lane(&http->lanes[job->lane], job);
  begin_waiting(http, job->lane);
  return true;
}

void tc__job_answer(struct tc__http_job *job, bool wanted) {
  if (wanted) tc__conn_answer(job->conn, &job->answer);
}

void tc__conn_work(struct tc__http_conn *c, enum tc__http_lane_kind lane, const char *type,
                   void (*run)(struct tc__http_job *job, struct tc_query_session *session)) {
  const struct tc__http_job job = {
    .run = run, .done = tc__job_answer, .answer.type = type, .lane = lane
  };

  if (!tc__job_begin(c->http, c, &job)) tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}

void tc__jobs_end(struct tc_http *http) {
  pthread_mutex_lock(&http->lock);
  http->jobs_refused = true;
  while (http->jobs_running > 0) pthread_cond_wait(&http->idle, &http->lock);
  pthread_mutex_unlock(&http->lock);
  while (http->session_count > 0) tc_query_session_free(http->sessions[--http->session_count]);
}
