/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of collector/metrics.def and their Prometheus text.
 *
 * Each loop counts in a struct of its own. The fields are atomics that only their loop writes, with
 * plain loads and stores: a scrape reads them from another thread without asking the loop, which may be
 * in the middle of a slice.
 *
 * Threads   tc_metric_*(): the struct's loop. tc_metrics_text(): any.
 */
#ifndef TC_METRICS_H
#define TC_METRICS_H

#include <stdatomic.h>

#include "base/buf.h"
#include "collector/reports.h"
#include "collector/store.h"

struct tc_metrics {
#define TC_METRIC(type, field, text) atomic_ullong field;
#define TC_STORE_METRIC(type, name, field, text)
#define TC_WAIT_METRIC(type, name, text)
#include "collector/metrics.def"
#undef TC_METRIC
#undef TC_STORE_METRIC
#undef TC_WAIT_METRIC
};

static inline void tc_metric_add(atomic_ullong *m, uint64_t n) {
  atomic_store_explicit(m, atomic_load_explicit(m, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void tc_metric_sub(atomic_ullong *m, uint64_t n) {
  tc_metric_add(m, -n);
}

static inline void tc_metric_peak(atomic_ullong *m, uint64_t value) {
  if (value > atomic_load_explicit(m, memory_order_relaxed))
    atomic_store_explicit(m, value, memory_order_relaxed);
}

enum { TC_PEER_SERIES_MAX = 1000 };

/* Everything a scrape shows. loops: one struct a loop. reports may be NULL. Traced programs' own
 * figures (trace_*) stop at TC_PEER_SERIES_MAX series; what was left out is a metric too. */
TB_MUST tb_rc tc_metrics_text(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                              const struct tc_store_stats *store, struct tc_reports *reports);

#endif
