/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the heap, as the AllocFree experiment shows them: which live, and how much was allocated, by type and by the entry
 * function of the goroutine that allocated.
 *
 * An object takes what its size class takes; of a trace that does not show the heap's spans, what its type does. An object that
 * was there when the trace began has no allocating goroutine. Those of one type and function stand in a row by age, so that the oldest is known.
 *
 * Memory    from the mem of the windows: 17 bytes for each place of two maps, of objects and of pages, which have at most
 *           TO_OBJECTS_MAX and TO_HEAP_PAGES_MAX entries, and 32 an object; 48 bytes and a series for each pair of type and
 *           function, of which there are at most TO_ALLOCATORS_MAX.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the event is not counted.
 */
#ifndef TO_MEASURE_LIVE_OBJECTS_H
#define TO_MEASURE_LIVE_OBJECTS_H

#include "base/arena.h"
#include "online/event/allocfree.h"
#include "online/window/window.h"

enum {
  TO_OBJECTS_MAX = 1 << 19,
  TO_HEAP_PAGES_MAX = 1 << 19,
  TO_ALLOCATORS_MAX = 4096,
  TO_ALLOCATOR_OTHER = 0, /* of the types and functions that are not told apart */
};

struct to_allocator {
  struct to_string type; /* a NUL follows */
  uint32_t entry;        /* of online/spans/sums.h */
  uint32_t series;       /* allocations; lengths are bytes */
  uint64_t live, live_bytes;
  uint32_t oldest, youngest; /* places of its objects; 0: none */
};

struct to_live_object {
  to_ns born; /* of one that was there when the trace began: when it was shown */
  uint64_t bytes;
  uint32_t allocator;
  uint32_t older, younger; /* of the same allocator; of a free place the next one */
};

struct to_live_objects {
  struct to_windows *windows;
  struct to_allocfree allocfree;
  struct tb_arena text;
  struct tb_map objects; /* id -> its place, from 1 */
  struct tb_map pages;   /* of the heap's spans: number -> pages << 8 | size class */
  struct tb_map by_type; /* hash of the name -> its text */
  struct tb_map by_key;  /* type's text and entry -> allocator */
  struct to_live_object *object;
  size_t n_objects, objects_room; /* places that were ever taken, the first one none */
  uint32_t free_place;            /* 0: none */
  struct to_allocator *allocator;
  size_t allocators, room;
  uint64_t secret, live, live_bytes;
  uint64_t untracked; /* objects beyond TO_OBJECTS_MAX, since the start */
  uint32_t allocated; /* series: the allocators' are its parts */
  bool seen;
};

TB_MUST tb_rc to_live_objects_init(struct to_live_objects *o, struct to_windows *windows);
void to_live_objects_fini(struct to_live_objects *o); /* accepts a zeroed one */
TB_MUST tb_rc to_live_objects_generation(struct to_live_objects *o,
                                         const struct to_generation *gen);
/* An event of the experiment, or another one. entry: of the goroutine in whose context it is. */
TB_MUST tb_rc to_live_objects_event(struct to_live_objects *o, const struct to_generation *gen,
                                    const struct to_event *ev, uint32_t entry);
/* When the oldest object of the allocator was made; there is one. */
static inline to_ns to_live_objects_oldest(const struct to_live_objects *o,
                                           const struct to_allocator *allocator) {
  return o->object[allocator->oldest].born;
}
/* Events are missing: what lives is not known any more. */
void to_live_objects_forget(struct to_live_objects *o);

#endif
