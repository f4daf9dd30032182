/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that has neither thread nor socket: what answers the socket's questions answers these. */
#include "collector/query/session.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/query/private.h"

struct tc_query_session {
  struct tc_archive archive; /* its env only */
  struct tc__worker worker;
  Tracecollect__V1__Reply reply;
};

struct tc_query_session *tc_query_session_new(const struct tc_query_session_env *env) {
  struct tc_query_session *session = calloc(1, sizeof *session);

  if (session == NULL) return NULL;
  session->archive.env = (struct tc_archive_env){ .store = env->store,
                                                  .reports = env->reports,
                                                  .triggers = env->triggers,
                                                  .kept = env->kept,
                                                  .started_wall_ns = env->started_wall_ns,
                                                  .version = env->version };
  session->archive.durable = env->durable;
  session->worker.archive = &session->archive;
  tb_mem_init(&session->worker.mem, tb_mem_libc, NULL, TC__ANSWER_MEMORY_MAX);
  tb_arena_init(&session->worker.arena, &session->worker.mem, 64 << 10);
  return session;
}

void tc_query_session_free(struct tc_query_session *session) {
  if (session == NULL) return;
  tc_catalog_close(session->worker.catalog);
  tb_arena_fini(&session->worker.arena);
  free(session);
}

const Tracecollect__V1__Reply *tc_query_session_ask(struct tc_query_session *session,
                                                    const Tracecollect__V1__Request *request) {
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_VERIFY);
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_SNAP);
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_LIST || !request->list->settle);
  tb_arena_reset(&session->worker.arena);
  tracecollect__v1__reply__init(&session->reply);
  tc__archive_answer(&session->worker, request, &session->reply);
  return &session->reply;
}

tb_rc tc_query_session_open(struct tc_query_session *session, uint64_t segment,
                            struct tb_diag *diag, struct tc_segment_row *out_row, int *out_fd) {
  tb_rc rc = tc__archive_open(&session->worker, segment, diag, out_row, out_fd);

  if (rc != TB_OK) tc__archive_look_at_catalog(&session->worker, diag);
  return rc;
}
