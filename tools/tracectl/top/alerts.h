/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a collector's alerts on a thread of its own, from its live events over HTTP. Reconnects if the collector is away.
 *
 * Threads   all calls from one thread; the sink is called on the receiving thread.
 * Errors    start: TB_NOMEM. The sink gets the reason if alerts cannot be received, NULL when they are again.
 */
#ifndef TK_TOP_ALERTS_H
#define TK_TOP_ALERTS_H

#include <time.h>

#include "tools/tracectl/remote/client.h"

struct tk_alert_sink {
  void *self;
  void (*alert)(void *self, uint64_t wall_ns, const char *text);
  void (*trouble)(void *self, const char *why);
};

struct tk_alerts;

/* Receives alerts of the selected streams. */
TB_MUST tb_rc tk_alerts_start(const struct tk_client_args *args, const struct tk_selector *selector,
                              struct tk_alert_sink sink, struct tb_diag *diag,
                              struct tk_alerts **out);
/* Returns false if the thread has not ended by then; nothing is freed in that case. */
bool tk_alerts_stop(struct tk_alerts *alerts, const struct timespec *until);

#endif
