/* SPDX-License-Identifier: Apache-2.0 */
/* Sections that span several calls: while a thread holds one the generation does not end (agent/emit/core/emit.h).
 *
 * A holding thread's `busy` is TA_BUSY_HELD: code that handles this value may write inside, all other code finds the
 * thread busy and writes nothing. While an event is written `busy` is 1, so that a signal handler that interrupts it
 * writes nothing.
 *
 * Threads   on its thread.
 */
#ifndef TA_EMIT_EVENTS_HELD_H
#define TA_EMIT_EVENTS_HELD_H

#include "agent/emit/events/put.h"

static inline bool ta_is_held(struct ta_thread *t) {
  return atomic_load_explicit(&t->busy, memory_order_relaxed) == TA_BUSY_HELD;
}

/* Begins a section, also inside a hold. Returns NULL to write nothing. running: only on a thread that runs a goroutine. */
static inline struct ta_thread *ta_enter_inside(bool running) {
  struct ta_thread *t = ta_self;

  if (TB_LIKELY(t == NULL || !ta_is_held(t))) return running ? ta_enter_running() : ta_enter();
  if (running && t->hold != TA_HOLDS_RUNNING) {
    ta_misuse(t, "an event of running threads, from a thread that waits or is in a system call");
    return NULL;
  }
  atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
  return t;
}

static inline void ta_leave_inside(struct ta_thread *t) {
  if (TB_UNLIKELY(t->holds > 0))
    atomic_store_explicit(&t->busy, TA_BUSY_HELD, memory_order_relaxed);
  else
    ta_leave(t);
}

#endif
