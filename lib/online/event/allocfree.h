/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes events of the AllocFree experiment (GODEBUG=traceallocfree=1): addresses, sizes, names of types.
 *
 *   TB_TRY(to_allocfree_generation(af, gen));     -- at each generation's first event
 *   struct to_heap_event heap;
 *   if (to_allocfree_event(af, ev, &heap)) ...    -- ev->type is one of the nine
 *
 * The experimental batches hold two things: how addresses are packed (once a trace) and the table of types (in
 * each generation, as its ids are new). All other batches are skipped.
 *
 * Memory    from mem, 24 bytes a type and a hash map. Names are valid as long as their generation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: types of this generation are missing.
 */
#ifndef TO_EVENT_ALLOCFREE_H
#define TO_EVENT_ALLOCFREE_H

#include "base/map.h"
#include "online/event/generation.h"

struct to_heap_type {
  uint64_t id;            /* in its generation */
  uint64_t address;       /* of the runtime's type descriptor: the same in each generation */
  uint64_t bytes;         /* size of an object */
  uint64_t pointer_bytes; /* up to the end of an object's last pointer */
  struct to_string name;  /* "main.node" */
};

struct to_allocfree {
  struct tb_mem *mem;
  bool packing_known; /* the next four are valid */
  uint64_t heap_start, page_bytes, object_align, stack_align;
  struct to_heap_type *type;
  size_t types, room;
  struct tb_map by_id;
};

void to_allocfree_init(struct to_allocfree *af, struct tb_mem *mem);
void to_allocfree_fini(struct to_allocfree *af);
TB_MUST tb_rc to_allocfree_generation(struct to_allocfree *af, const struct to_generation *gen);
/* Returns NULL for an unknown type; id 0 means that the event has no type. */
const struct to_heap_type *to_allocfree_type(const struct to_allocfree *af, uint64_t id);
/* Returns the type id of an object's event, valid in its generation, or 0. */
uint64_t to_allocfree_type_id(const struct to_event *ev);

enum to_heap_thing { TO_HEAP_SPAN, TO_HEAP_OBJECT, TO_HEAP_STACK };
enum to_heap_verb {
  TO_HEAP_EXISTS, /* it was there when the trace began */
  TO_HEAP_ALLOC,
  TO_HEAP_FREE,
};

struct to_heap_event {
  enum to_heap_thing thing;
  enum to_heap_verb verb;
  uint64_t id;         /* equal ids are the same place */
  uint64_t address;    /* 0: the packing is not known */
  uint64_t bytes;      /* of the span or stack, or of the object's type; 0: unknown */
  bool holds_objects;  /* the span is for objects; otherwise for the runtime, including stacks */
  bool no_pointers;    /* the span's objects have no pointers */
  unsigned size_class; /* of the span's objects, by the runtime's numbering; 0: one large object */
  const struct to_heap_type *type; /* of an object; NULL: unknown */
};
/* Returns false if the event is not one of the experiment's. */
bool to_allocfree_event(const struct to_allocfree *af, const struct to_event *ev,
                        struct to_heap_event *out);

#endif
