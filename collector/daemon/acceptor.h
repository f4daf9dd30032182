/* SPDX-License-Identifier: Apache-2.0 */
/* Where agents come in: which ones may, and to which loop.
 *
 *   listener ──> limits on all, limiter on the one source ──> the worker with the least connections
 *
 * Threads   all calls on the main loop's thread.
 * Errors    open: TB_IO, TB_NOMEM with address and reason in diag.
 */
#ifndef TC_DAEMON_ACCEPTOR_H
#define TC_DAEMON_ACCEPTOR_H

#include "collector/daemon/socket_activation.h"
#include "collector/daemon/worker.h"
#include "collector/ingest/handshake_limiter.h"

struct tc_acceptor;

struct tc_acceptor_env {
  uv_loop_t *uv;
  const struct tc_config *config;
  const struct tc_socket *socket; /* the service manager's; taken if there is one */
  struct tc_handshake_limiter *limiter;
  struct tc_worker *const *workers;
  unsigned count;
  const atomic_uint *handshakes; /* at this moment, of all workers */
  struct tc_metrics *metrics;    /* the main loop's */
};

TB_MUST tb_rc tc_acceptor_open(const struct tc_acceptor_env *env, struct tb_diag *diag,
                               struct tc_acceptor **out);
void tc_acceptor_close(
    struct tc_acceptor *acceptor); /* NULL is fine; no more connections are taken */
void tc_acceptor_free(struct tc_acceptor *acceptor); /* after the loop's last turn; NULL is fine */

const char *tc_acceptor_address(const struct tc_acceptor *acceptor);

#endif
