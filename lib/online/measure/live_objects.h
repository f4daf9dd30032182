/* SPDX-License-Identifier: Apache-2.0 */
/* Live objects of the heap and allocated bytes, from the AllocFree experiment, by type and by the entry function of the
 * allocating goroutine.
 *
 * An object's size is its size class's, or its type's if the trace does not show the heap's spans. The allocating goroutine of an
 * object older than the trace is unknown. Objects of one type and function are listed by age, so that the oldest is known.
 *
 * Memory    from the mem of the windows: 32 bytes for each of at most TO_OBJECTS_MAX objects; 17 bytes for each slot of two maps,
 *           of these objects and of at most TO_HEAP_PAGES_MAX pages; 48 bytes and a series for each of at most
 *           TO_ALLOCATORS_MAX pairs of type and function.
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
  TO_ALLOCATOR_OTHER = 0, /* shared by types and functions beyond TO_ALLOCATORS_MAX */
};

struct to_allocator {
  struct to_string type; /* a NUL follows */
  uint32_t entry;        /* number of the entry function in online/spans/sums.h */
  uint32_t series;       /* counts allocations, with bytes as lengths */
  uint64_t live, live_bytes;
  uint32_t oldest, youngest; /* places in to_live_objects.object; 0: none */
};

struct to_live_object {
  to_ns born; /* for an object older than the trace, the time at which the trace shows it */
  uint64_t bytes;
  uint32_t allocator;
  uint32_t older, younger; /* neighbours in the allocator's list; younger links free places */
};

struct to_live_objects {
  struct to_windows *windows;
  struct to_allocfree allocfree;
  struct tb_arena text;
  struct tb_map objects; /* id -> place, from 1 */
  struct tb_map pages;   /* page number -> pages of its span << 8 | size class */
  struct tb_map by_type; /* hash of the name -> its text */
  struct tb_map by_key;  /* type's text and entry -> allocator */
  struct to_live_object *object;
  size_t n_objects, objects_room; /* places ever used, including place 0, which stays empty */
  uint32_t free_place;            /* 0: none */
  struct to_allocator *allocator;
  size_t allocators, room;
  uint64_t secret, live, live_bytes;
  uint64_t untracked; /* objects beyond TO_OBJECTS_MAX, since the start */
  uint32_t allocated; /* series of all allocations; the allocators' series are its parts */
  bool seen;
};

TB_MUST tb_rc to_live_objects_init(struct to_live_objects *o, struct to_windows *windows);
void to_live_objects_fini(struct to_live_objects *o); /* accepts a zeroed one */
TB_MUST tb_rc to_live_objects_generation(struct to_live_objects *o,
                                         const struct to_generation *gen);
/* Ignores events of other experiments and of Go. entry: entry function of the event's goroutine. */
TB_MUST tb_rc to_live_objects_event(struct to_live_objects *o, const struct to_generation *gen,
                                    const struct to_event *ev, uint32_t entry);
/* Returns when the allocator's oldest object was allocated. Requires a live object. */
static inline to_ns to_live_objects_oldest(const struct to_live_objects *o,
                                           const struct to_allocator *allocator) {
  return o->object[allocator->oldest].born;
}
/* Forgets all live objects, after events were lost. */
void to_live_objects_forget(struct to_live_objects *o);

#endif
