/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by server.c and lease.c. */
#ifndef TC_QUERY_SERVER_PRIVATE_H
#define TC_QUERY_SERVER_PRIVATE_H

#include <pthread.h>

#include "base/arena.h"
#include "collector/query/server.h"

enum {
  TC__WORKERS = 8,
  TC__REQUEST_BYTES_MAX = 64 << 10,
  TC__REQUEST_MEMORY_MAX = 8 << 20, /* unpacked */
  TC__SEND_MS = 30000, /* a reader that asks and does not read must not hold a worker for ever */
};

/* A context whose question waits elsewhere, or a spare one. */
struct tc__line {
  struct tc__line *next; /* spare */
  struct tc_archive *archive;
  nng_ctx ctx;
  nng_aio *aio;
  struct tc_lease_ask ask;
};

struct tc__worker {
  struct tc_archive *archive;
  struct tc_query_session *session;
  pthread_t thread;
  bool started;
  bool ended; /* under the archive's lock */
  nng_ctx ctx;
  nng_pipe pipe; /* of the question */
  nng_aio *aio;
  struct tb_mem mem;
  struct tb_arena arena; /* the question */
};

struct tc_archive {
  struct tc_archive_env env;
  nng_socket socket;
  struct tc_nng_listeners listeners;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a worker has ended */
  bool stopping;
  struct tc__worker workers[TC__WORKERS];
  struct tc__line *lines, *spare; /* spare: under lock */
  size_t n_lines;
};

/* --- lease.c: questions that another part answers --- */

TB_MUST tb_rc tc__lines_open(struct tc_archive *a, struct tb_diag *diag);
/* After the leases have stopped, before the socket is closed. */
void tc__lines_close(struct tc_archive *a);
/* Hands the question of w's context to the leases and gives w another context; TB_OK: w has nothing to
 * answer. */
TB_MUST tb_rc tc__archive_lease(struct tc__worker *w, const Tracecollect__V1__Request *request,
                                struct tb_diag *diag);
bool tc__archive_is_lease(const Tracecollect__V1__Request *request);

/* A message of the reply; NULL: no memory. */
nng_msg *tc__archive_pack(const Tracecollect__V1__Reply *reply);

#endif
