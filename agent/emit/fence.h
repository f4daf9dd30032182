/* SPDX-License-Identifier: Apache-2.0 */
/* A fence that costs one side nothing: a store before light() and a load behind it stay in that order for whoever
 * stands between a store and a load at heavy().
 *
 * Threads pass light() with every event, the turner heavy() once a generation. So the kernel is asked to run a fence on
 * all cores that run us (membarrier(2)), and light() only keeps the compiler in order. Where the kernel cannot do that,
 * and under ThreadSanitizer, which does not know of it, both are ordinary.
 *
 * Threads   choose() while nobody else is about; the rest from any.
 */
#ifndef TA_FENCE_H
#define TA_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

extern bool ta_fence_is_light;

void ta_fence_choose(void);
void ta_fence_heavy(void);

/* Stores 1 to busy, then passes the fence. */
static inline void ta_fence_light(atomic_uint *busy) {
#ifdef __SANITIZE_THREAD__
  atomic_exchange(busy, 1);
#else
  if (__builtin_expect(ta_fence_is_light, 1)) {
    atomic_store_explicit(busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_exchange(busy, 1);
  }
#endif
}

#endif
