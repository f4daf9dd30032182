/* SPDX-License-Identifier: Apache-2.0 */
/* Each object of the heap, as an event (TRACEAGENT_MALLOC): its address, and how many bytes malloc() has it take up.
 * One that begins on pages of its own, by and large, is written with the span of these.
 *
 * Memory that is allocated before the session begins, by the constructors of other libraries, is kept in a table: then
 * it can be written as there already, and the trace is complete. A forked child's session, and that of a program
 * that calls daemon(), begin without that. */
#include <malloc.h>

#include "agent/preload/preload.h"
#include "agent/preload/variables.h"
#include "traceexperiment.h"

enum { KEPT_MAX = 4096, PROBES = 32, SPAN_BYTES = 64 << 10 };

static struct {
  _Atomic uintptr_t
      at; /* 0: free, and never used; GONE: used before; TAKEN: it is filled in later */
  size_t bytes;
} kept[KEPT_MAX];
static const uintptr_t GONE = 1, TAKEN = 2;

static size_t place_of(const void *p) {
  return ((uintptr_t)p >> 4) * UINT32_C(0x9e3779b9) >> 7;
}

/* Before our constructor: nothing of the program's is looked at, its allocator's answers included, before it is known that
 * this is wanted. libc has the environment once its own constructor has run; what is allocated before is not kept. */
bool ta_objects_are_early(void) {
  static atomic_bool wanted; /* asked once: the answer takes a look at every library */
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

/* One that finds no place is written as one whose begin was not seen. */
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

/* Telling. */

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

/* No other thread runs yet, but for one that some library's constructor has begun: what it frees in between
 * may be written as still there. So the block itself is not looked at. */
void ta_objects_trace_kept(void) {
  for (size_t i = 0; i < KEPT_MAX; i++) {
    uintptr_t p = atomic_exchange(&kept[i].at, 0);
    if (p > TAKEN) trace(TA_SPAN_EXISTS, TA_OBJECT_EXISTS, (void *)p, kept[i].bytes);
  }
}
