/* SPDX-License-Identifier: Apache-2.0 */
/* A rate limit in one number: the time at which all admitted events would have been due at exactly this rate.
 *
 * Errors    none: a rate of 0 is no limit.
 * Threads   any.
 */
#ifndef TC_BASE_RATE_LIMIT_H
#define TC_BASE_RATE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tc_rate_limit {
  atomic_ullong due_ns; /* zeroed: no events yet */
};

#define TC_RATE_LIMIT_BURST_NS UINT64_C(1000000000) /* this much of the rate may arrive at once */

static inline uint64_t tc_rate_limit_step_ns(uint64_t rate) {
  return UINT64_C(1000000000) / rate;
}

/* Admits an event at now_ns; rate: events a second. Returns false if it is too early; it is then not counted. */
static inline bool tc_rate_limit_take(struct tc_rate_limit *pace, uint64_t rate, uint64_t now_ns) {
  unsigned long long due = atomic_load_explicit(&pace->due_ns, memory_order_relaxed), from;

  if (rate == 0) return true;
  do {
    from = due > now_ns ? due : now_ns;
    if (from + tc_rate_limit_step_ns(rate) - now_ns > TC_RATE_LIMIT_BURST_NS) return false;
  } while (!atomic_compare_exchange_weak_explicit(&pace->due_ns, &due,
                                                  from + tc_rate_limit_step_ns(rate),
                                                  memory_order_relaxed, memory_order_relaxed));
  return true;
}

/* Returns an admitted event that did not happen. */
static inline void tc_rate_limit_return(struct tc_rate_limit *pace, uint64_t rate) {
  if (rate != 0)
    atomic_fetch_sub_explicit(&pace->due_ns, tc_rate_limit_step_ns(rate), memory_order_relaxed);
}

/* Returns whether a fresh limit would admit as much. */
static inline bool tc_rate_limit_is_idle(struct tc_rate_limit *pace, uint64_t now_ns) {
  return atomic_load_explicit(&pace->due_ns, memory_order_relaxed) <= now_ns;
}

#endif
