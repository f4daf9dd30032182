/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of live streams, from a running collector. */
#ifndef TK_REPORT_LIVE_H
#define TK_REPORT_LIVE_H

#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/report/set.h"

/* Adds a report for each selected kind and stream: as of the stream's last ordered generation; ended streams come
 * last. Adds the sums of a whole service as ask->sum says. None may match. Errors: the client's. */
TB_MUST tb_rc tk_report_live(struct tk_client *client, const struct tk_report_ask *ask,
                             const struct tk_selector *selector, struct tk_report_set *set,
                             struct tb_diag *diag);

#endif
