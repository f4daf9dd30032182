/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of lib/config/metrics.def as Prometheus text.
 *
 * Each loop counts in a struct of its own. The fields are atomics that only this loop writes, with relaxed loads and
 * stores: a scrape reads them from another thread without waiting for the loop.
 *
 * Threads   tc_metric_*(): the struct's loop. tc_metrics_text(): any.
 */
#ifndef TC_HTTP_METRICS_TEXT_H
#define TC_HTTP_METRICS_TEXT_H

#include "base/buf.h"
#include "collector/analysis/report_table.h"
#include "collector/model/counters.h"
#include "collector/store/store.h"

enum { TC_PEER_SERIES_MAX = 1000 };

/* Writes the answer to a scrape. loops: one struct per loop. reports may be NULL. Traced programs have at most
 * TC_PEER_SERIES_MAX series (trace_*); a metric counts those left out. */
TB_MUST tb_rc tc_metrics_text(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                              const struct tc_store_stats *store, struct tc_reports *reports);

#endif
