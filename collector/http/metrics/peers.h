/* SPDX-License-Identifier: Apache-2.0 */
/* Values of traced programs as Prometheus text. Each figure and column whose schema has a metric is a family. Reports are
 * those of window "all", whose counts only rise.
 *
 *   distribution  summary in seconds: quantiles if known, _sum, _count
 *   number        counter if the name ends with _total, else gauge; durations in seconds
 *   share         gauge
 *
 * Labels are service, instance and, for a column, the row's columns whose schema has a label. A label's value is
 * [A-Za-z0-9._:-]{1,64} or "other", so that traced programs cannot inject lines. The value "/KIND/a/b" is written as
 * "a.b".
 *
 * A restarted program is a new stream with counts from zero. Only the newest stream of a service and instance is written,
 * so that a scraper sees an ordinary counter reset.
 *
 * At most TC_PEER_SERIES_MAX lines are written. Above that quantiles are left out; if that is not enough, the instances of
 * a service are merged into "other"; further series are left out and counted.
 *
 * Threads   any; slow, so call it on a worker.
 * Errors    TB_NOMEM.
 */
#ifndef TC_HTTP_METRICS_PEERS_H
#define TC_HTTP_METRICS_PEERS_H

#include "base/buf.h"
#include "collector/analysis/report_table.h"

TB_MUST tb_rc tc_metrics_peers(struct tb_buf *out, struct tc_reports *reports);

/* metrics/text.c: writes the lines before a family. */
void tc_metrics_head(struct tb_buf *out, const char *name, const char *type, const char *text);

#endif
