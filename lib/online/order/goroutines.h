/* SPDX-License-Identifier: Apache-2.0 */
/* The goroutines that are known, by id.
 *
 * Go hands ids out one by one, a peer may choose any. So within a window of 8,192 ids neighbours have
 * neighbouring buckets and never collide in a table of that size or larger; where a window begins is a secret.
 *
 * Each has a slot, a small number that it alone has while it lives: blocks of 64 are numbered, and the numbers of those
 * that were given back are used first.
 *
 * Memory    from mem: 48 bytes a goroutine, in blocks that are given back when empty (but for 192 KiB of
 *           them), and 8 to 16 of buckets.
 * Errors    TB_BUDGET, TB_NOMEM from mem; lookups cannot fail.
 */
#ifndef TO_ORDER_GOROUTINES_H
#define TO_ORDER_GOROUTINES_H

#include "base/mem.h"

struct to_g_more; /* online/order/state.h */

/* Its object stays while a thread is bound to it, even when it has ended. */
struct to_g {
  struct to_g *next; /* in its bucket; of the spare ones */
  int64_t id;
  uint64_t seq;           /* numbers count within a generation */
  struct to_g_more *more; /* NULL: nothing rare */
  uint32_t seq_gen;       /* to_order.gen_count of that one */
  uint32_t bound;         /* threads that point here */
  uint32_t slot;          /* of all goroutines, from 1; dense */
  uint8_t status;         /* enum tw_go_status, or TO_G_GONE */
};

enum { TO_G_GONE = 0xff, TO_G_WINDOW_BITS = 13, TO_G_BUCKETS_MIN = 1024 };

struct to_g_block;

struct to_goroutines {
  struct tb_mem *mem;
  struct to_g **buckets;
  uint64_t mask;   /* number of buckets - 1 */
  uint64_t factor; /* odd */
  size_t count;
  struct to_g_block *roomy; /* blocks with places left, the next to use first */
  size_t empty;             /* of them: it is empty */
  uint32_t *free_numbers;   /* of blocks given back; room for all that were ever given out */
  uint32_t numbers, free_count;
  size_t free_room;
  struct to_g *few[TO_G_BUCKETS_MIN];
};

/* Lives in place: not to be moved. */
void to__goroutines_init(struct to_goroutines *gs, struct tb_mem *mem);
/* Every goroutine has been removed. */
void to__goroutines_fini(struct to_goroutines *gs);

/* The id must be absent. The new one is gone, until its status says otherwise. */
TB_MUST tb_rc to__goroutines_add(struct to_goroutines *gs, int64_t id, struct to_g **out);
void to__goroutines_remove(struct to_goroutines *gs, struct to_g *g);
/* Any one; NULL: none is left. Starts looking at bucket *from. */
struct to_g *to__goroutines_any(const struct to_goroutines *gs, size_t *from);

/* The top bits of the product, as many as buckets will ever need: the lower ones are easy to foresee. */
static inline size_t to__goroutines_bucket(const struct to_goroutines *gs, int64_t id) {
  uint64_t window = (uint64_t)id >> TO_G_WINDOW_BITS;

  return (size_t)(((uint64_t)id + (window * gs->factor >> 40)) & gs->mask);
}

/* NULL: absent. */
static inline struct to_g *to__goroutines_find(const struct to_goroutines *gs, int64_t id) {
  struct to_g *g = gs->buckets[to__goroutines_bucket(gs, id)];

  while (g != NULL && g->id != id) g = g->next;
  return g;
}

#endif
