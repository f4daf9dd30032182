/* SPDX-License-Identifier: Apache-2.0 */
/* The AllocFree experiment (GODEBUG=traceallocfree=1) with its numbers made into what they stand for: an
 * address, a size, a type's name.
 *
 *   TB_TRY(to_allocfree_generation(af, gen));     -- at each generation's first event
 *   struct to_heap_event heap;
 *   if (to_allocfree_event(af, ev, &heap)) ...    -- ev->type is one of the nine
 *
 * Its experimental batches hold two things: how addresses are packed (once a trace) and the table of types
 * (each generation's own, as ids start over). Batches of other experiments are passed over, and so is what
 * does not read as one of the two.
 *
 * Memory    from mem, 24 bytes a type and a hash map. Names are lent as long as their generation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the types of this generation are not known.
 */
#ifndef TO_EVENT_ALLOCFREE_H
#define TO_EVENT_ALLOCFREE_H

#include "base/map.h"
#include "online/event/generation.h"

struct to_heap_type {
  uint64_t id;            /* in its generation */
  uint64_t address;       /* of the runtime's own description: the same in each generation */
  uint64_t bytes;         /* an object's */
  uint64_t pointer_bytes; /* up to the end of its last pointer */
  struct to_string name;  /* "main.node" */
};

struct to_allocfree {
  struct tb_mem *mem;
  bool packing_known; /* the next four hold */
  uint64_t heap_start, page_bytes, object_align, stack_align;
  struct to_heap_type *type;
  size_t types, room;
  struct tb_map by_id;
};

void to_allocfree_init(struct to_allocfree *af, struct tb_mem *mem);
void to_allocfree_fini(struct to_allocfree *af);
TB_MUST tb_rc to_allocfree_generation(struct to_allocfree *af, const struct to_generation *gen);
/* NULL: no such type; id 0 stands for "none said". */
const struct to_heap_type *to_allocfree_type(const struct to_allocfree *af, uint64_t id);
/* The type that an object's event names: its id, for the table of the event's generation. 0: it names none. */
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
  uint64_t id;         /* what it goes by: equal ids are the same place */
  uint64_t address;    /* 0: the packing is not known */
  uint64_t bytes;      /* of a span or stack; of an object its type's; 0: not said */
  bool holds_objects;  /* a span of objects; else of the runtime's own, stacks among it */
  bool no_pointers;    /* in such a span */
  unsigned size_class; /* of such a span, by the runtime's own numbering; 0: one large object */
  const struct to_heap_type *type; /* of an object; NULL: not said */
};
/* False: it is none of the experiment's events. */
bool to_allocfree_event(const struct to_allocfree *af, const struct to_event *ev,
                        struct to_heap_event *out);

#endif
