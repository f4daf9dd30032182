/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts agents' connections: limits them, and chooses a loop.
 *
 *   listener ──> limits on all, limiter of the source address ──> the worker with the fewest connections
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
  const struct tc_socket *socket; /* from the service manager; owned if it has one */
  struct tc_handshake_limiter *limiter;
  struct tc_worker *const *workers;
  unsigned count;
  const atomic_uint *handshakes; /* running handshakes of all workers */
  struct tc_metrics *metrics;    /* the main loop's */
};

TB_MUST tb_rc tc_acceptor_open(const struct tc_acceptor_env *env, struct tb_diag *diag,
                               struct tc_acceptor **out);
void tc_acceptor_close(struct tc_acceptor *acceptor); /* stops accepting; NULL is fine */
void tc_acceptor_free(struct tc_acceptor *acceptor);  /* after the loop's last turn; NULL is fine */

const char *tc_acceptor_address(const struct tc_acceptor *acceptor);

#endif
