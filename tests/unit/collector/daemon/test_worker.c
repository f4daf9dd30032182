/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to a worker that never runs, and senders that find the worker's queue full. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/daemon/acceptor.h"
#include "collector/daemon/worker.h"
#include "collector/pipeline.h"

static unsigned freed;

static void count_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
                       void *argp) {
  (void)parent, (void)ptr, (void)data, (void)index, (void)argl, (void)argp;
  freed++;
}

static struct scene {
  struct tc_config config;
  struct tc_leases *leases;
  struct tc_quotas *quotas;
  struct tc_reports *reports;
  struct tc_worker *worker;
  atomic_uint handshakes;
} scene;

/* Opens a worker that is never started: orders to it stay in its queue. */
static void open_station(void) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tc_config_init(&scene.config);
  scene.config.top_loops = 1;
  strcpy(scene.config.listen_agents, "127.0.0.1:0");
  cr_assert_eq(tc_config_finish(&scene.config, &diag), TB_OK, "%s", diag.text);
  struct tc_leases_env leases_env = { .config = &scene.config, .loops = 1 };
  cr_assert_eq(tc_leases_new(&leases_env, &diag, &scene.leases), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_quotas_new(&scene.quotas), TB_OK);
  cr_assert_eq(tc_reports_new(1 << 20, &scene.reports), TB_OK);
  struct tc_worker_env env = { .config = &scene.config,
                               .leases = scene.leases,
                               .handshakes = &scene.handshakes,
                               .quotas = scene.quotas,
                               .reports = scene.reports };
  cr_assert_eq(tc_worker_open(&env, &scene.worker), TB_OK);
}

static void close_station(void) {
  tc_worker_close(scene.worker);
  tc_reports_free(scene.reports);
  tc_quotas_free(scene.quotas);
  tc_leases_free(scene.leases);
  tc_config_fini(&scene.config);
}

Test(worker, one_that_never_starts_frees_the_context_it_was_sent) {
  open_station();
  CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, NULL, NULL, NULL, count_free);
  struct tc_order order = { .kind = TC_ORDER_CONTEXT, .context = SSL_CTX_new(TLS_server_method()) };
  cr_assert_not_null(order.context);
  cr_assert(tc_worker_order(scene.worker, &order));
  close_station();
  cr_assert_eq(freed, 1);
}

/* ---- the acceptor in front of it */

static int connect_to(const char *address) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  at.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
  cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

/* Returns the log line of a peer that is turned away. */
static void turned_away(char *out, size_t bytes) {
  struct tc_worker *const workers[] = { scene.worker };
  struct tc_metrics metrics = { .connections = 0 };
  struct tc_socket none = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_handshake_limiter *limiter;
  struct tc_acceptor *acceptor;
  uv_loop_t uv;
  int log = memfd_create("log", MFD_CLOEXEC), err = dup(STDERR_FILENO);

  cr_assert_eq(uv_loop_init(&uv), 0);
  cr_assert_eq(tc_handshake_limiter_new(1, &limiter), TB_OK);
  struct tc_acceptor_env env = { &uv, &scene.config,     &none,   limiter, workers,
                                 1,   &scene.handshakes, &metrics };
  cr_assert_eq(tc_acceptor_open(&env, &diag, &acceptor), TB_OK, "%s", diag.text);
  dup2(log, STDERR_FILENO);
  int peer = connect_to(tc_acceptor_address(acceptor));
  while (atomic_load(&metrics.peers_turned_away_total) == 0) uv_run(&uv, UV_RUN_ONCE);
  dup2(err, STDERR_FILENO);
  ssize_t n = pread(log, out, bytes - 1, 0);
  out[n > 0 ? n : 0] = '\0';
  tc_acceptor_close(acceptor);
  uv_run(&uv, UV_RUN_DEFAULT);
  tc_acceptor_free(acceptor);
  tc_handshake_limiter_free(limiter);
  cr_assert_eq(uv_loop_close(&uv), 0);
  close(peer);
  close(log);
  close(err);
}

Test(worker, a_full_mailbox_is_not_blamed_on_the_number_of_connections) {
  struct tc_order order = { .kind = TC_ORDER_RECHECK };
  char text[1000];

  open_station();
  while (tc_worker_order(scene.worker, &order)) continue;
  turned_away(text, sizeof text);
  cr_assert_not_null(strstr(text, "takes no more orders"), "%s", text);
  cr_assert_null(strstr(text, "connections_max"), "%s", text);
  close_station();
}

Test(worker, the_number_of_connections_is_named_where_it_is_reached) {
  char text[1000];

  open_station();
  scene.config.agents_connections_max = 0;
  turned_away(text, sizeof text);
  cr_assert_not_null(strstr(text, "agents.connections_max is 0"), "%s", text);
  close_station();
}
