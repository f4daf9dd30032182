/* SPDX-License-Identifier: Apache-2.0 */
/* Values of traced programs as Prometheus text: each figure and column whose schema names a metric is a family. The
 * reports are those of window "all", whose counts only rise.
 *
 *   distribution  a summary in seconds: quantiles where they were kept, _sum, _count
 *   number        a counter if the name ends with _total, else a gauge; lengths of time in seconds
 *   share         a gauge
 *
 * Labels are service, instance and, of a column, the row's columns that have a label of their own.
 *
 * A program that was restarted under its old name is a new stream with counts from zero: the newest stream of a
 * service and instance is shown, so a scraper sees an ordinary counter reset. A label's value is
 * [A-Za-z0-9._:-]{1,64}, or "other": traced programs cannot write lines of their own into the text. The value
 * "/KIND/a/b" is shown as "a.b".
 *
 * At most TC_PEER_SERIES_MAX lines, however many programs there are. Above that the quantiles are left out; if that is
 * not enough, the instances of a service become one ("other"); the series that are still too many are left out and
 * counted.
 *
 * Threads   any; takes its time, so it is for a worker.
 * Errors    TB_NOMEM.
 */
#ifndef TC_HTTP_METRICS_PEERS_H
#define TC_HTTP_METRICS_PEERS_H

#include "base/buf.h"
#include "collector/analysis/report_table.h"

TB_MUST tb_rc tc_metrics_peers(struct tb_buf *out, struct tc_reports *reports);

/* metrics/text.c: the lines in front of a family. */
void tc_metrics_head(struct tb_buf *out, const char *name, const char *type, const char *text);

#endif
