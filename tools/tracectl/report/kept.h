/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a time in the past: sums of the reports that a collector keeps. */
#ifndef TK_REPORT_KEPT_H
#define TK_REPORT_KEPT_H

#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/report/set.h"

/* Adds the sum of each selected kind and stream over all kept stretches that overlap the selector's time, and the sums of a
 * whole service as ask->sum says. None may match. *out_damaged: number of records that were left out. Errors: the client's. */
TB_MUST tb_rc tk_report_kept(struct tk_client *client, const struct tk_report_ask *ask,
                             const struct tk_selector *selector, struct tk_report_set *set,
                             uint64_t *out_damaged, struct tb_diag *diag);

/* Says that nothing is kept of the selected time, and of which time there is something. Lent until the next call. */
const char *tk_report_kept_none(struct tk_client *client, const struct tk_selector *selector);

#endif
