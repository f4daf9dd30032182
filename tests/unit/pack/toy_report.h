/* SPDX-License-Identifier: Apache-2.0 */
/* A report of a kind that no analysis has, with a value of each type: code that shows it knows no kind by name.
 *
 *   figures  served (distribution) queued (count) heap_bytes (bytes) idle_share (share) paused (flag) seen_ns (time)
 *            owner (text) lost (count, not known)
 *   tables   by_stack     stack | served failed (distributions) retries (count): 2 rows and the row of the rest, of 7
 *            by_type      type | served (with quantiles), wait_share: 2 rows
 *            queued_now   goroutine | age_ns late stack: a list of 1 row
 */
#ifndef TT_UNIT_PACK_TOY_REPORT_H
#define TT_UNIT_PACK_TOY_REPORT_H

#include "proto/report.pb-c.h"

/* Makes a report, valid until tt_toy_report_free(). There is one at a time, and parts may be cut from it. */
Tracecollect__V1__StreamReport *tt_toy_report(void);
void tt_toy_report_free(void);
const Tracecollect__V1__ReportSchema *tt_toy_schema(void);

#endif
