/* SPDX-License-Identifier: Apache-2.0 */
/* Each object of the heap, as an event (TRACEAGENT_MALLOC): its address, and its size by malloc_usable_size(). An object of at
 * least SPAN_BYTES, which by and large begins on pages of its own, is written with a span of the same size.
 *
 * Objects allocated before the session begins, by constructors of other libraries, are stored in a table: so they can be
 * written as existing, and the trace is complete. The session of a forked child, or of a program that calls daemon(), begins
 * without them. */
#include <malloc.h>

#include "agent/preload/preload.h"
#include "agent/preload/variables.h"
#include "traceexperiment.h"

enum { KEPT_MAX = 4096, PROBES = 32, SPAN_BYTES = 64 << 10 };

static struct {
  _Atomic uintptr_t at; /* 0: never used; GONE: free again; TAKEN: being filled in */
  size_t bytes;
} kept[KEPT_MAX];
static const uintptr_t GONE = 1, TAKEN = 2;

static size_t place_of(const void *p) {
  return ((uintptr_t)p >> 4) * UINT32_C(0x9e3779b9) >> 7;
}

/* Called before our constructor has run. Nothing of the program's is read, not even its allocator's results, before it is known
 * that objects are traced. The environment is there once libc's own constructor has run; earlier objects are not stored. */
bool ta_objects_are_early(void) {
  static atomic_bool wanted; /* cached, since ta_wants_early_objects() searches every library */
  unsigned early = 1u << TA_TRACE_EARLY;

  if (atomic_load_explicit(&wanted, memory_order_relaxed)) return true;
  if (environ == NULL) return false;
  if (ta_wants_early_objects()) {
    atomic_store(&wanted, true);
    return true;
  }
  atomic_compare_exchange_strong(&ta_traced, &early, 0);
  return false;
}

/* If the table has no free place, the object's end is later written as one whose begin was not seen. */
void ta_objects_keep(void *p) {
  size_t at = place_of(p);

  for (size_t i = 0; i < PROBES; i++, at++) {
    uintptr_t there = atomic_load(&kept[at % KEPT_MAX].at);
    if (there > GONE || !atomic_compare_exchange_strong(&kept[at % KEPT_MAX].at, &there, TAKEN))
      continue;
    kept[at % KEPT_MAX].bytes = TA_REAL(malloc_usable_size)(p);
    atomic_store(&kept[at % KEPT_MAX].at, (uintptr_t)p);
    return;
  }
}

void ta_objects_forget(void *p) {
  size_t at = place_of(p);

  for (size_t i = 0; i < PROBES; i++, at++) {
    uintptr_t there = atomic_load(&kept[at % KEPT_MAX].at);
    if (there == 0) return;
    if (there != (uintptr_t)p) continue;
    atomic_store(&kept[at % KEPT_MAX].at, GONE);
    return;
  }
}

static ta_name of_heap(void) {
  static _Atomic ta_name name;
  ta_name known = atomic_load_explicit(&name, memory_order_relaxed);

  if (TB_LIKELY(known != 0)) return known;
  known = ta_name_of("malloc");
  atomic_store_explicit(&name, known, memory_order_relaxed);
  return known;
}

static void trace(enum ta_memory span, enum ta_memory object, const void *p, size_t bytes) {
  ta_agent_begins();
  if (bytes >= SPAN_BYTES) ta_memory_tell(span, p, bytes, of_heap());
  ta_memory_tell(object, p, bytes, of_heap());
  ta_agent_ends();
}

void ta_objects_made(void *p) {
  trace(TA_SPAN_ALLOC, TA_OBJECT_ALLOC, p, TA_REAL(malloc_usable_size)(p));
}

void ta_objects_gone(void *p) {
  ta_agent_begins();
  size_t bytes = TA_REAL(malloc_usable_size)(p);
  ta_memory_tell(TA_OBJECT_FREE, p, 0, 0);
  if (bytes >= SPAN_BYTES) ta_memory_tell(TA_SPAN_FREE, p, 0, 0);
  ta_agent_ends();
}

/* No other thread runs yet, except threads that other libraries' constructors have started. An object that they free meanwhile
 * may be written as existing: so the object itself is not read. */
void ta_objects_trace_kept(void) {
  for (size_t i = 0; i < KEPT_MAX; i++) {
    uintptr_t p = atomic_exchange(&kept[i].at, 0);
    if (p > TAKEN) trace(TA_SPAN_EXISTS, TA_OBJECT_EXISTS, (void *)p, kept[i].bytes);
  }
}
