/* SPDX-License-Identifier: Apache-2.0 */
/* Hears the alerts of a collector's feed, on a thread of its own: only those topics of the streams that it
 * follows come over the wire. A collector that is away is dialled again.
 *
 * Threads   all calls from one thread; the sink is called on the hearer's.
 * Errors    start: TB_NOMEM. A feed that cannot be heard is reported to the sink, in words (NULL: it is).
 */
#ifndef TK_TOP_ALERTS_H
#define TK_TOP_ALERTS_H

#include <time.h>

#include "proto/feed.pb-c.h"
#include "tools/tracectl/remote/client.h"

struct tk_alert_sink {
  void *self;
  void (*alert)(void *self, const Tracecollect__V1__Alert *alert);
  void (*trouble)(void *self, const char *why);
};

struct tk_alerts;

TB_MUST tb_rc tk_alerts_start(const struct tk_client_args *args, struct tk_alert_sink sink,
                              struct tb_diag *diag, struct tk_alerts **out);
void tk_alerts_follow(struct tk_alerts *alerts, const char *service, const char *instance);
/* False: it is in the middle of dialling, has not ended until then, and stays as it is. */
bool tk_alerts_stop(struct tk_alerts *alerts, const struct timespec *until);

#endif
