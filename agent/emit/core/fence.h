/* SPDX-License-Identifier: Apache-2.0 */
/* A fence that costs one side nothing: the store before light() and the load after it stay in that order for
 * a thread that is at heavy().
 *
 * Threads pass light() with every event, the flusher passes heavy() once a generation. So the kernel is asked to run
 * a fence on all cores that run us (membarrier(2)), and light() only keeps the compiler in order. Where the kernel
 * cannot do that, and under ThreadSanitizer, which does not know of it, both are ordinary.
 *
 * The first choose() decides for the life of the process, since threads may stand between the two at any time. A
 * seccomp filter that comes later can make membarrier fail, or kill the caller: then heavy() answers false, once and
 * for all, and what light() was passed for cannot be known any more.
 *
 * Threads   any.
 */
#ifndef TA_EMIT_CORE_FENCE_H
#define TA_EMIT_CORE_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"

extern atomic_bool ta_fence_is_light;

bool ta_fence_choose(void);        /* false: there is no fence any more */
TB_MUST bool ta_fence_heavy(void); /* false: it was none */

/* Stores, then passes the fence. */
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
