/* SPDX-License-Identifier: Apache-2.0 */
/* Where agents come in: who may, and to which loop.
 *
 *   listener ──> limits on all, gate on the one source ──> the station with the least connections
 *
 * Threads   all calls on the main loop's thread.
 * Errors    open: TB_IO, TB_NOMEM with address and reason in diag.
 */
#ifndef TC_DAEMON_ACCEPTOR_H
#define TC_DAEMON_ACCEPTOR_H

#include "collector/daemon/socket_activation.h"
#include "collector/daemon/worker.h"
#include "collector/ingest/handshake_limiter.h"

struct tc_door;

struct tc_door_env {
  uv_loop_t *uv;
  const struct tc_config *config;
  const struct tc_socket *socket; /* the service manager's; taken if there is one */
  struct tc_gate *gate;
  struct tc_station *const *stations;
  unsigned count;
  const atomic_uint *handshakes; /* at this moment, of all stations */
  struct tc_metrics *metrics;    /* the main loop's */
};

TB_MUST tb_rc tc_door_open(const struct tc_door_env *env, struct tb_diag *diag,
                           struct tc_door **out);
void tc_door_close(struct tc_door *door); /* NULL is fine; nobody comes in any more */
void tc_door_free(struct tc_door *door);  /* after the loop's last turn; NULL is fine */

const char *tc_door_address(const struct tc_door *door);

#endif
