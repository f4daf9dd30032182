/* SPDX-License-Identifier: Apache-2.0 */
/* An asymmetric fence, free on one side: the store before light() and the load after it keep their order as seen by a
 * thread that calls heavy().
 *
 * Threads call light() with every event, the flusher calls heavy() once a generation. So heavy() makes the kernel run a
 * fence on all cores that run this process (membarrier(2)), and light() is a compiler barrier only. If the kernel cannot
 * do that, and under ThreadSanitizer, which does not know membarrier, both are ordinary fences.
 *
 * The first choose() decides for the life of the process, since a thread may be between the two at any time. A seccomp
 * filter installed later can make membarrier fail, or kill the caller: then heavy() returns false for good, and the order
 * that light() relied on is lost.
 *
 * Threads   any.
 */
#ifndef TA_EMIT_CORE_FENCE_H
#define TA_EMIT_CORE_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"

extern atomic_bool ta_fence_is_light;

bool ta_fence_choose(void);        /* false: heavy() has failed */
TB_MUST bool ta_fence_heavy(void); /* false: membarrier failed, nothing was ordered */

/* Stores, then fences. */
static inline void ta_fence_store(atomic_uint *word, unsigned value) {
#ifdef __SANITIZE_THREAD__
  atomic_exchange(word, value);
#else
  if (__builtin_expect(atomic_load_explicit(&ta_fence_is_light, memory_order_relaxed), 1)) {
    atomic_store_explicit(word, value, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_exchange(word, value);
  }
#endif
}

static inline void ta_fence_light(atomic_uint *busy) {
  ta_fence_store(busy, 1);
}

#endif
