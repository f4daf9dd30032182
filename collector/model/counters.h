/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of lib/config/metrics.def.
 *
 * Each loop has a struct of its own. Only that loop writes the fields, with plain loads and stores; they are atomics so that
 * a scrape on another thread can read them while the loop is busy.
 *
 * Threads   tc_metric_*(): the struct's loop.
 */
#ifndef TC_MODEL_COUNTERS_H
#define TC_MODEL_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

struct tc_metrics {
#define TC_METRIC(type, field, text) atomic_ullong field;
#define TC_STORE_METRIC(type, name, field, text)
#define TC_WAIT_METRIC(type, name, text)
#include "config/metrics.def"
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

static inline void tc_metric_set(atomic_ullong *m, uint64_t value) {
  atomic_store_explicit(m, value, memory_order_relaxed);
}

static inline void tc_metric_peak(atomic_ullong *m, uint64_t value) {
  if (value > atomic_load_explicit(m, memory_order_relaxed))
    atomic_store_explicit(m, value, memory_order_relaxed);
}

#endif
