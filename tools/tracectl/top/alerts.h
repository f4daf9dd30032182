/* SPDX-License-Identifier: Apache-2.0 */
/* Hears a collector's alerts, on a thread of its own: its live events over HTTP. A collector that is away is asked again.
 *
 * Threads   all calls from one thread; the sink is called on the hearer's.
 * Errors    start: TB_NOMEM. Alerts that cannot be heard are reported to the sink, in words (NULL: they are).
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

/* Of the streams that selector names. */
TB_MUST tb_rc tk_alerts_start(const struct tk_client_args *args, const struct tk_selector *selector,
                              struct tk_alert_sink sink, struct tb_diag *diag,
                              struct tk_alerts **out);
/* False: it has not ended until then, and stays as it is. */
bool tk_alerts_stop(struct tk_alerts *alerts, const struct timespec *until);

#endif
