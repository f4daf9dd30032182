/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads that each wait for a question, answer it and wait again: a slow disk or a long list
 * holds one of them. */
#include "collector/query/server_private.h"

#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "nng/close.h"
#include "proto/unpack.h"

/* --- questions --------------------------------------------------------------------------------- */

static bool is_of_this_host(const struct tc__worker *w) {
  nng_sockaddr address;

  return nng_pipe_get_addr(w->pipe, NNG_OPT_REMADDR, &address) == 0 &&
         address.s_family == NNG_AF_IPC;
}

static tb_rc answer_triggers(struct tc__worker *w, const Tracecollect__V1__TriggerRequest *ask,
                             struct tb_diag *diag, Tracecollect__V1__TriggerReply **out) {
  if ((*ask->add != '\0' || *ask->remove != '\0') && !is_of_this_host(w))
    return tb_fail(diag, TB_REFUSED, "rules are changed on the collector's own host only (ipc://)");
  return tc_query_triggers(w->session, ask, diag, out);
}

static tb_rc answer_by_kind(struct tc__worker *w, const Tracecollect__V1__Request *request,
                            struct tb_diag *diag, Tracecollect__V1__Reply *reply) {
  struct tc_query_session *s = w->session;

#define ANSWER(KIND, field, call)                                                                  \
  case TRACECOLLECT__V1__REQUEST__ASK_##KIND:                                                      \
    reply->answer_case = TRACECOLLECT__V1__REPLY__ANSWER_##KIND;                                   \
    return call(s, request->field, diag, &reply->field);
  switch ((int)request->ask_case) {
    ANSWER(LIST, list, tc_query_list)
    ANSWER(READ, read, tc_query_read)
    ANSWER(REPORT, report, tc_query_report)
    ANSWER(SNAP, snap, tc_query_snap)
    ANSWER(FIRINGS, firings, tc_query_firings)
    ANSWER(HISTORY, history, tc_query_history)
#undef ANSWER
  case TRACECOLLECT__V1__REQUEST__ASK_STATUS:
    reply->answer_case = TRACECOLLECT__V1__REPLY__ANSWER_STATUS;
    return tc_query_status(s, diag, &reply->status);
  case TRACECOLLECT__V1__REQUEST__ASK_VERIFY:
    reply->answer_case = TRACECOLLECT__V1__REPLY__ANSWER_VERIFY;
    return tc_query_verify(s, request->verify, NULL, diag, &reply->verify);
  case TRACECOLLECT__V1__REQUEST__ASK_TRIGGER:
    reply->answer_case = TRACECOLLECT__V1__REPLY__ANSWER_TRIGGER;
    return answer_triggers(w, request->trigger, diag, &reply->trigger);
  default: return tb_fail(diag, TB_UNSUPPORTED, "this collector does not know that question");
  }
}

/* True: another part will answer. */
static bool answer_request(struct tc__worker *w, const Tracecollect__V1__Request *request,
                           struct tb_diag *diag, Tracecollect__V1__Reply *reply) {
  bool lease = tc__archive_is_lease(request);
  tb_rc rc = lease ? tc__archive_lease(w, request, diag) : answer_by_kind(w, request, diag, reply);

  if (rc == TB_OK) return lease;
  tracecollect__v1__reply__init(reply);
  reply->rc = rc;
  reply->error = diag->text;
  return false;
}

/* --- workers ----------------------------------------------------------------------------------- */

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
  struct tb_diag diag;
  bool handed_on = false;

  tb_diag_clear(&diag);
  w->pipe = nng_msg_get_pipe(question);
  if (request != NULL) {
    handed_on = answer_request(w, request, &diag, &reply);
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
  tb_mem_init(&w->mem, tb_mem_libc, NULL, TC__REQUEST_MEMORY_MAX);
  tb_arena_init(&w->arena, &w->mem, 64 << 10);
  w->session = tc_query_session_new(a->env.query);
  if (w->session == NULL || nng_aio_alloc(&w->aio, NULL, NULL) != 0 || nng_ctx_open(&w->ctx, a->socket) != 0)
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
  pthread_mutex_unlock(&a->lock);
  tc_nng_listeners_close(&a->listeners);
  for (struct tc__worker *w = a->workers; w < a->workers + TC__WORKERS; w++) end_worker(w);
  tc__lines_close(a);
  if (a->socket.id != 0) (void)tc_nng_close(a->socket); /* its callback uses nothing of ours */
  for (struct tc__worker *w = a->workers; w < a->workers + TC__WORKERS; w++) {
    if (w->aio != NULL) nng_aio_free(w->aio);
    tc_query_session_free(w->session);
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
