/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that has neither thread nor socket: what answers the socket's questions answers these. */
#include "collector/query/session.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/query/private.h"

struct tc_archive_desk {
  struct tc_archive archive; /* its env only */
  struct tc__worker worker;
  Tracecollect__V1__Reply reply;
};

struct tc_archive_desk *tc_archive_desk_new(const struct tc_archive_desk_env *env) {
  struct tc_archive_desk *desk = calloc(1, sizeof *desk);

  if (desk == NULL) return NULL;
  desk->archive.env = (struct tc_archive_env){ .store = env->store,
                                               .reports = env->reports,
                                               .started_wall_ns = env->started_wall_ns,
                                               .version = env->version };
  desk->archive.durable = env->durable;
  desk->worker.archive = &desk->archive;
  tb_mem_init(&desk->worker.mem, tb_mem_libc, NULL, TC__ANSWER_MEMORY_MAX);
  tb_arena_init(&desk->worker.arena, &desk->worker.mem, 64 << 10);
  return desk;
}

void tc_archive_desk_free(struct tc_archive_desk *desk) {
  if (desk == NULL) return;
  tc_catalog_close(desk->worker.catalog);
  tb_arena_fini(&desk->worker.arena);
  free(desk);
}

const Tracecollect__V1__Reply *tc_archive_desk_ask(struct tc_archive_desk *desk,
                                                   const Tracecollect__V1__Request *request) {
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_VERIFY);
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_SNAP);
  assert(request->ask_case != TRACECOLLECT__V1__REQUEST__ASK_LIST || !request->list->settle);
  tb_arena_reset(&desk->worker.arena);
  tracecollect__v1__reply__init(&desk->reply);
  tc__archive_answer(&desk->worker, request, &desk->reply);
  return &desk->reply;
}

tb_rc tc_archive_desk_open(struct tc_archive_desk *desk, uint64_t segment, struct tb_diag *diag,
                           struct tc_segment_row *out_row, int *out_fd) {
  tb_rc rc = tc__archive_open(&desk->worker, segment, diag, out_row, out_fd);

  if (rc != TB_OK) tc__archive_look_at_catalog(&desk->worker, diag);
  return rc;
}
