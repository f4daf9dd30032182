/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions share one sender to the store and its barrier numbers, under a lock. */
#include "collector/query/session.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/base/logger.h"
#include "collector/query/private.h"

/* --- barriers ---------------------------------------------------------------------------------- */

/* Barriers are numbered in order: a reply settles all earlier ones, too. */
void tc_query_reply(struct tc_query *q, struct tc_reply *reply) {
  TB_MAGIC_CHECK(reply, TC_REPLY_MAGIC);
  pthread_mutex_lock(&q->lock);
  if (reply->barrier > q->settled) q->settled = reply->barrier;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  tc_reply_free(reply);
}

static bool is_past(const struct timespec *at) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

/* Called with the lock: the store's queue for a sender allows one caller at a time. The lock is released only while the queue
 * is full. */
static tb_rc submit_barrier(struct tc_query *q, const struct timespec *deadline,
                            struct tb_diag *diag, uint64_t *out) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_BARRIER);

  if (msg == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  msg->loop = q->env.sender;
  for (;;) {
    struct timespec soon = tc_from_now(1);

    *out = msg->barrier = ++q->asked;
    if (tc_store_submit(q->env.store, q->env.sender, msg)) return TB_OK;
    if (q->stopping || is_past(deadline)) break;
    pthread_cond_timedwait(&q->changed, &q->lock, &soon);
  }
  tc_submit_free(msg);
  return tb_fail(diag, TB_BUSY, "the store's queue is full; try again");
}

static tb_rc fail_stopping(struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "the collector is shutting down");
}

tb_rc tc__query_settle(struct tc_query_session *s, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(TC__SETTLE_MS);
  struct tc_query *q = s->query;
  struct tc_store_stats stats;
  uint64_t barrier = 0;

  tc_store_stats(q->env.store, &stats);
  if (stats.failed) return TB_OK; /* the store has stopped: what it has is in files */

  pthread_mutex_lock(&q->lock);
  tb_rc rc = submit_barrier(q, &deadline, diag, &barrier);
  while (rc == TB_OK && q->settled < barrier) {
    if (q->stopping)
      rc = fail_stopping(diag);
    else if (pthread_cond_timedwait(&q->changed, &q->lock, &deadline) == ETIMEDOUT)
      rc = tb_fail(diag, TB_BUSY, "the store is still busy after %d s", TC__SETTLE_MS / 1000);
  }
  pthread_mutex_unlock(&q->lock);
  return rc;
}

/* --- the catalog ------------------------------------------------------------------------------- */

tb_rc tc__query_await_rebuild(struct tc_query_session *s, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(TC__REBUILD_MS);
  struct tc_query *q = s->query;

  while (tc_store_catalog_is_stale(q->env.store)) {
    struct timespec soon = tc_from_now(10);

    pthread_mutex_lock(&q->lock);
    if (!q->stopping) pthread_cond_timedwait(&q->changed, &q->lock, &soon);
    pthread_mutex_unlock(&q->lock);
    if (tc__query_is_stopping(q)) return fail_stopping(diag);
    if (is_past(&deadline))
      return tb_fail(diag, TB_BUSY, "the catalog is being rebuilt from the metas; ask again");
  }
  return TB_OK;
}

/* The catalog can be rebuilt from the metas. */
static void rebuild(struct tc_query *q, const char *why) {
  if (tc_store_catalog_is_stale(q->env.store)) return;
  tc_log(TC_ERROR, "archive", "%s; it will be rebuilt", why);
  tc_store_rebuild_catalog(q->env.store);
}

tb_rc tc__query_catalog(struct tc_query_session *s, struct tb_diag *diag) {
  if (s->catalog != NULL && tc_catalog_is_current(s->catalog)) return TB_OK;
  tc_catalog_close(s->catalog); /* replaced by a rebuild */
  s->catalog = NULL;
  tb_rc rc = tc_catalog_open(tc_store_dirfd(s->query->env.store), false, diag, &s->catalog);
  if (rc == TB_CORRUPT) rebuild(s->query, diag->text);
  return rc;
}

static void rebuild_if_rotten(struct tc_query_session *s, const struct tb_diag *diag) {
  if (s->catalog == NULL || !tc_catalog_is_rotten(s->catalog)) return;
  rebuild(s->query, diag->text);
  tc_catalog_close(s->catalog);
  s->catalog = NULL;
}

/* --- questions --------------------------------------------------------------------------------- */

tb_rc tc__query_end(struct tc_query_session *s, tb_rc rc, struct tb_diag *diag) {
  if (rc == TB_OK) return TB_OK;
  rebuild_if_rotten(s, diag);
  if (diag->rc != TB_OK) return rc;
  return tb_fail(diag, rc, "%s",
                 rc == TB_BUDGET ? "the answer is too large: ask for less at a time"
                                 : tb_rc_text(rc));
}

tb_rc tc_query_session_open(struct tc_query_session *s, uint64_t segment, struct tb_diag *diag,
                            struct tc_segment_row *out_row, int *out_fd) {
  return tc__query_end(s, tc__query_open(s, segment, diag, out_row, out_fd), diag);
}

bool tc__query_is_stopping(struct tc_query *q) {
  pthread_mutex_lock(&q->lock);
  bool stopping = q->stopping;
  pthread_mutex_unlock(&q->lock);
  return stopping;
}

/* --- public ------------------------------------------------------------------------------------ */

tb_rc tc_query_new(const struct tc_query_env *env, struct tb_diag *diag, struct tc_query **out) {
  struct tc_query *q = calloc(1, sizeof *q);

  if (q == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  q->env = *env;
  pthread_mutex_init(&q->lock, NULL);
  tc_cond_init(&q->changed);
  *out = q;
  return TB_OK;
}

void tc_query_stop(struct tc_query *q) {
  if (q == NULL) return;
  pthread_mutex_lock(&q->lock);
  q->stopping = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

void tc_query_free(struct tc_query *q) {
  if (q == NULL) return;
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  free(q);
}

struct tc_reports *tc_query_reports(const struct tc_query *q) {
  return q->env.reports;
}

struct tc_query_session *tc_query_session_new(struct tc_query *query) {
  struct tc_query_session *s = calloc(1, sizeof *s);

  if (s == NULL) return NULL;
  s->query = query;
  tb_mem_init(&s->mem, tb_mem_libc, NULL, TC__ANSWER_MEMORY_MAX);
  tb_arena_init(&s->arena, &s->mem, 64 << 10);
  return s;
}

void tc_query_session_free(struct tc_query_session *s) {
  if (s == NULL) return;
  tc_catalog_close(s->catalog);
  tb_arena_fini(&s->arena);
  free(s);
}
