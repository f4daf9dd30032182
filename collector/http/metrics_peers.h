/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of traced programs as Prometheus text: trace_*, out of the reports of window "all", whose
 * counts only rise.
 *
 * A program that was restarted under its old name is a new stream with counts from zero: the newest
 * stream of a service and instance is shown, so a scraper sees an ordinary counter reset. No peer writes
 * our text for us: a label is [A-Za-z0-9._:-]{1,64}, or "other".
 *
 * At most TC_PEER_SERIES_MAX lines, whatever agents come: where there are more, first quantiles go, then
 * the instances of a service become one ("other"), and what is still too much is left out and counted.
 *
 * Threads   any; takes its time, so it is for a worker.
 * Errors    TB_NOMEM.
 */
#ifndef TC_HTTP_METRICS_PEERS_H
#define TC_HTTP_METRICS_PEERS_H

#include "base/buf.h"
#include "collector/analysis/report_table.h"

TB_MUST tb_rc tc_metrics_peers(struct tb_buf *out, struct tc_reports *reports);

/* metrics_text.c: the lines in front of a family. */
void tc_metrics_head(struct tb_buf *out, const char *name, const char *type, const char *text);

#endif
