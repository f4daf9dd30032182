/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of the known goroutines by id.
 *
 * Go assigns ids one by one; a hostile peer may choose any. So ids within a window of 8,192 have neighbouring buckets and
 * do not collide in a table of that size or larger, while the first bucket of each window is a secret.
 *
 * Each goroutine has a slot, a small number that no other living goroutine has: blocks of 64 goroutines are numbered, and
 * numbers of released blocks are used first.
 *
 * Memory    from mem: 48 bytes a goroutine, in blocks that are released when empty (192 KiB of them are
 *           kept), and 8 to 16 bytes of buckets.
 * Errors    TB_BUDGET, TB_NOMEM from mem; lookups cannot fail.
 */
#ifndef TO_ORDER_GOROUTINES_H
#define TO_ORDER_GOROUTINES_H

#include "base/mem.h"

struct to_g_more; /* online/order/state.h */

/* A goroutine. The object stays while a thread is bound to it, even after the goroutine has ended. */
struct to_g {
  struct to_g *next; /* in the bucket or in the list of spare objects */
  int64_t id;
  uint64_t seq;           /* last sequence number in generation seq_gen */
  struct to_g_more *more; /* NULL: no rare state */
  uint32_t seq_gen;       /* counted as to_order.gen_count */
  uint32_t bound;         /* number of threads bound to this goroutine */
  uint32_t slot;          /* from 1; dense */
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
  struct to_g_block *roomy; /* blocks with room, the next to use first */
  size_t empty;             /* number of empty blocks among them */
  uint32_t *free_numbers;   /* of released blocks; has room for all numbers ever used */
  uint32_t numbers, free_count;
  size_t free_room;
  struct to_g *few[TO_G_BUCKETS_MIN];
};

/* gs must not be moved afterwards. */
void to__goroutines_init(struct to_goroutines *gs, struct tb_mem *mem);
/* Requires that every goroutine has been removed. */
void to__goroutines_fini(struct to_goroutines *gs);

/* Adds an absent id, with status TO_G_GONE. */
TB_MUST tb_rc to__goroutines_add(struct to_goroutines *gs, int64_t id, struct to_g **out);
void to__goroutines_remove(struct to_goroutines *gs, struct to_g *g);
/* Returns any goroutine, or NULL if none is left. Searches from bucket *from on. */
struct to_g *to__goroutines_any(const struct to_goroutines *gs, size_t *from);

/* Uses the top bits of the product, because the lower ones are easy to predict. */
static inline size_t to__goroutines_bucket(const struct to_goroutines *gs, int64_t id) {
  uint64_t window = (uint64_t)id >> TO_G_WINDOW_BITS;

  return (size_t)(((uint64_t)id + (window * gs->factor >> 40)) & gs->mask);
}

/* Returns NULL if the id is absent. */
static inline struct to_g *to__goroutines_find(const struct to_goroutines *gs, int64_t id) {
  struct to_g *g = gs->buckets[to__goroutines_bucket(gs, id)];

  while (g != NULL && g->id != id) g = g->next;
  return g;
}

#endif
