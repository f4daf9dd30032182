/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of lib/config/metrics.def and their Prometheus text.
 *
 * Each loop counts in a struct of its own. The fields are atomics that only their loop writes, with
 * plain loads and stores: a scrape reads them from another thread without asking the loop, which may be
 * in the middle of a slice.
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

/* Everything a scrape shows. loops: one struct a loop. reports may be NULL. Traced programs' own
 * figures (trace_*) stop at TC_PEER_SERIES_MAX series; what was left out is a metric too. */
TB_MUST tb_rc tc_metrics_text(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                              const struct tc_store_stats *store, struct tc_reports *reports);

#endif
