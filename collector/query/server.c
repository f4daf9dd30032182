/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads that each wait for a question, answer it and wait again: a slow disk or a long list
 * holds one of them. Their only meeting point is the lock around the store's one sender. */
#include "collector/query/private.h"

#include <errno.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/base/logger.h"
#include "nng/close.h"
#include "proto/unpack.h"

/* --- barriers ---------------------------------------------------------------------------------- */

/* A cookie names its worker and which of its questions it belongs to. */
static uint64_t cookie_of(const struct tc__worker *w) {
  return w->asked * TC__WORKERS + w->index;
}

void tc_archive_reply(struct tc_archive *archive, struct tc_reply *reply) {
  struct tc__worker *w = &archive->workers[reply->barrier % TC__WORKERS];

  pthread_mutex_lock(&archive->lock);
  w->settled = reply->barrier / TC__WORKERS;
  pthread_cond_broadcast(&archive->changed);
  pthread_mutex_unlock(&archive->lock);
  tc_reply_free(reply);
}

static bool is_past(const struct timespec *at) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

/* The store's queue for this sender takes one caller at a time: the lock is held. */
static tb_rc submit_barrier(struct tc__worker *w, const struct timespec *deadline,
                            struct tb_diag *diag) {
  struct tc_archive *a = w->archive;
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_BARRIER);

  if (msg == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  w->asked++;
  msg->loop = a->env.sender;
  msg->barrier = cookie_of(w);
  while (!tc_store_submit(a->env.store, a->env.sender, msg)) {
    struct timespec soon = tc_from_now(1);
    if (a->stopping || is_past(deadline)) {
      tc_submit_free(msg);
      return tb_fail(diag, TB_IO, "the store takes no questions at the moment");
    }
    pthread_cond_timedwait(&a->changed, &a->lock, &soon);
  }
  return TB_OK;
}

tb_rc tc__archive_settle(struct tc__worker *w, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(TC__SETTLE_MS);
  struct tc_archive *a = w->archive;
  struct tc_store_stats stats;

  tc_store_stats(a->env.store, &stats);
  if (stats.failed) return TB_OK; /* nothing is acked any more: what is in files is all there is */

  pthread_mutex_lock(&a->lock);
  tb_rc rc = submit_barrier(w, &deadline, diag);
  while (rc == TB_OK && w->settled != w->asked) {
    if (a->stopping)
      rc = tb_fail(diag, TB_IO, "the collector is shutting down");
    else if (pthread_cond_timedwait(&a->changed, &a->lock, &deadline) == ETIMEDOUT)
      rc = tb_fail(diag, TB_IO, "the store is still busy after %d s", TC__SETTLE_MS / 1000);
  }
  pthread_mutex_unlock(&a->lock);
  return rc;
}

/* --- workers ----------------------------------------------------------------------------------- */

tb_rc tc__archive_await_rebuild(struct tc__worker *w, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(TC__REBUILD_MS);
  struct tc_archive *a = w->archive;

  while (tc_store_catalog_is_stale(a->env.store)) {
    struct timespec soon = tc_from_now(10);
    pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping;
    if (!stopping) pthread_cond_timedwait(&a->changed, &a->lock, &soon);
    pthread_mutex_unlock(&a->lock);
    if (stopping || is_past(&deadline))
      return tb_fail(diag, TB_IO, "the catalog is being rebuilt from the metas; ask again");
  }
  return TB_OK;
}

/* It is a copy of what the metas say. */
static void rebuild(struct tc_archive *a, const char *why) {
  if (tc_store_catalog_is_stale(a->env.store)) return;
  tc_log(TC_ERROR, "archive", "%s; it will be rebuilt", why);
  tc_store_rebuild_catalog(a->env.store);
}

tb_rc tc__archive_catalog(struct tc__worker *w, struct tb_diag *diag) {
  if (w->catalog != NULL && tc_catalog_is_current(w->catalog)) return TB_OK;
  tc_catalog_close(w->catalog); /* another one has taken its name */
  w->catalog = NULL;
  tb_rc rc = tc_catalog_open(tc_store_dirfd(w->archive->env.store), false, diag, &w->catalog);
  if (rc == TB_CORRUPT) rebuild(w->archive, diag->text);
  return rc;
}

void tc__archive_look_at_catalog(struct tc__worker *w, const struct tb_diag *diag) {
  if (w->catalog == NULL || !tc_catalog_is_rotten(w->catalog)) return;
  rebuild(w->archive, diag->text);
  tc_catalog_close(w->catalog);
  w->catalog = NULL;
}

static bool is_stopping(struct tc__worker *w) {
  pthread_mutex_lock(&w->archive->lock);
  bool stopping = w->archive->stopping;
  pthread_mutex_unlock(&w->archive->lock);
  return stopping;
}

/* NULL: called off, or nng has no memory. */
static nng_msg *next_question(struct tc__worker *w) {
  nng_aio_set_timeout(w->aio, NNG_DURATION_INFINITE);
  nng_ctx_recv(w->ctx, w->aio);
  nng_aio_wait(w->aio);
  return nng_aio_result(w->aio) == 0 ? nng_aio_get_msg(w->aio) : NULL;
}

static void send_answer(struct tc__worker *w, nng_msg *msg) {
  nng_aio_set_msg(w->aio, msg);
  nng_aio_set_timeout(w->aio, TC__SEND_MS);
  nng_ctx_send(w->ctx, w->aio);
  nng_aio_wait(w->aio);
  if (nng_aio_result(w->aio) != 0) nng_msg_free(msg);
}

nng_msg *tc__archive_pack(const Tracecollect__V1__Reply *reply) {
  nng_msg *msg;

  if (nng_msg_alloc(&msg, tracecollect__v1__reply__get_packed_size(reply)) != 0) return NULL;
  tracecollect__v1__reply__pack(reply, nng_msg_body(msg));
  return msg;
}

static void answer(struct tc__worker *w, nng_msg *question) {
  ProtobufCAllocator allocator = tp_arena_allocator(&w->arena);
  Tracecollect__V1__Reply reply = TRACECOLLECT__V1__REPLY__INIT;
  Tracecollect__V1__Request *request =
      tracecollect__v1__request__unpack(&allocator, nng_msg_len(question), nng_msg_body(question));
  char malformed[] = "not a request of this protocol", no_memory[] = "no memory";
  bool handed_on = false;

  w->pipe = nng_msg_get_pipe(question);
  if (request != NULL) {
    handed_on = tc__archive_answer(w, request, &reply);
  } else {
    reply.rc = w->arena.is_short ? TB_NOMEM : TB_PROTOCOL;
    reply.error = w->arena.is_short ? no_memory : malformed;
  }
  nng_msg *msg = handed_on ? NULL : tc__archive_pack(&reply);
  if (msg != NULL) send_answer(w, msg); /* else the reader's deadline speaks */
  nng_msg_free(question);
  tb_arena_reset(&w->arena);
}

static void *work(void *self) {
  struct tc__worker *w = self;

  while (!is_stopping(w)) {
    nng_msg *question = next_question(w);
    if (question != NULL)
      answer(w, question);
    else if (!is_stopping(w))
      nng_msleep(10); /* out of memory: no use in asking at once */
  }
  pthread_mutex_lock(&w->archive->lock);
  w->ended = true;
  pthread_cond_broadcast(&w->archive->changed);
  pthread_mutex_unlock(&w->archive->lock);
  return NULL;
}

/* Calls the worker off until it has heard: it may be just about to wait. Only then may the socket be
 * closed, since nng 1.5.2 panics when nng_close() meets an answer on its way out. */
static void end_worker(struct tc__worker *w) {
  struct tc_archive *a = w->archive;
  bool ended = false;

  if (!w->started) return;
  while (!ended) {
    struct timespec soon = tc_from_now(5);

    nng_aio_cancel(w->aio);
    pthread_mutex_lock(&a->lock);
    if (!w->ended) pthread_cond_timedwait(&a->changed, &a->lock, &soon);
    ended = w->ended;
    pthread_mutex_unlock(&a->lock);
  }
  pthread_join(w->thread, NULL);
}

static tb_rc start_worker(struct tc_archive *a, unsigned index, struct tb_diag *diag) {
  struct tc__worker *w = &a->workers[index];

  w->archive = a;
  w->index = index;
  tb_mem_init(&w->mem, tb_mem_libc, NULL, TC__ANSWER_MEMORY_MAX);
  tb_arena_init(&w->arena, &w->mem, 64 << 10);
  if (nng_aio_alloc(&w->aio, NULL, NULL) != 0 || nng_ctx_open(&w->ctx, a->socket) != 0)
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  int rv = tc_thread_start(&w->thread, NULL, work, w);
  if (rv != 0) return tb_fail(diag, TB_IO, "archive thread: %s", strerror(rv));
  w->started = true;
  return TB_OK;
}

/* --- readers ----------------------------------------------------------------------------------- */

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  (void)event, (void)self;
  tc_nng_tls_pipe_came(pipe, NULL, NULL);
}

/* --- public ------------------------------------------------------------------------------------ */

static tb_rc listen_on_all(struct tc_archive *a, struct tb_diag *diag) {
  const char *urls = a->env.config->listen_archive;
  char url[TC_URL_BYTES];

  while (tc_urls_next(&urls, url))
    TB_TRY(tc_nng_listeners_add(&a->listeners, a->socket, url, a->env.tls, diag));
  return TB_OK;
}

static tb_rc open_socket(struct tc_archive *a, struct tb_diag *diag) {
  int rv = nng_rep0_open(&a->socket);

  if (rv != 0) return tb_fail(diag, TB_NOMEM, "archive socket: %s", nng_strerror(rv));
  rv = nng_socket_set_size(a->socket, NNG_OPT_RECVMAXSZ, TC__REQUEST_BYTES_MAX);
  if (rv == 0) rv = nng_pipe_notify(a->socket, NNG_PIPE_EV_ADD_PRE, on_pipe, NULL);
  if (rv != 0) return tb_fail(diag, TB_IO, "archive socket: %s", nng_strerror(rv));
  TB_TRY(tc__lines_open(a, diag));
  for (unsigned i = 0; i < TC__WORKERS; i++) TB_TRY(start_worker(a, i, diag));
  return listen_on_all(a, diag);
}

tb_rc tc_archive_start(const struct tc_archive_env *env, struct tb_diag *diag,
                       struct tc_archive **out) {
  struct tc_archive *a = calloc(1, sizeof *a);

  if (a == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  a->env = *env;
  a->durable = strcmp(env->config->top_sync, "durable") == 0;
  pthread_mutex_init(&a->lock, NULL);
  tc_cond_init(&a->changed);

  tb_rc rc = open_socket(a, diag);
  a->env.config = NULL; /* a reload may free it */
  if (rc != TB_OK) {
    tc_archive_stop(a);
    return rc;
  }
  *out = a;
  return TB_OK;
}

void tc_archive_stop(struct tc_archive *a) {
  if (a == NULL) return;
  pthread_mutex_lock(&a->lock);
  a->stopping = true;
  pthread_cond_broadcast(&a->changed);
  pthread_mutex_unlock(&a->lock);
  tc_nng_listeners_close(&a->listeners);
  for (struct tc__worker *w = a->workers; w < a->workers + TC__WORKERS; w++) end_worker(w);
  tc__lines_close(a);
  if (a->socket.id != 0) (void)tc_nng_close(a->socket); /* its callback uses nothing of ours */
  for (struct tc__worker *w = a->workers; w < a->workers + TC__WORKERS; w++) {
    if (w->aio != NULL) nng_aio_free(w->aio);
    tc_catalog_close(w->catalog);
    tb_arena_fini(&w->arena);
  }
  pthread_cond_destroy(&a->changed);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

uint64_t tc_archive_listener_turns(const struct tc_archive *archive) {
  return tc_nng_listeners_turns(&archive->listeners);
}

const char *tc_archive_url(const struct tc_archive *archive, unsigned i) {
  return tc_nng_listeners_url(&archive->listeners, i);
}
