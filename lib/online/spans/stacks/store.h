/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, frames and stacks that the stack tables of one thread share: the instances of a service have the same.
 *
 * Equal texts are stored once, and so are frames of equal texts and stacks of equal frames. Each is counted by its users and freed with the
 * last of them; nothing is evicted. What is shared is equal byte by byte, so no stream can change what another one shows.
 * A frame "module+0x1f" of a C program can get its name later. So it belongs to one user, and so does each stack that
 * has one.
 *
 * Memory    a user pays for what it is the first to store. When it ends, the store's mem pays for what others still use; that mem has
 *           no limit of its own and the same backing as the users'. Hash tables and recent ids: from the store's mem.
 * Threads   use each object, and the tables that share it, from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the store is unchanged.
 */
#ifndef TO_SPANS_STACK_STORE_H
#define TO_SPANS_STACK_STORE_H

#include "base/mem.h"
#include "online/spans/stacks/callstack.h"

enum { TO_STACK_RECENT = 256, TO_STACK_FRAME_BITS = 10, TO_STACK_FRAMES_MAX = 128 };

struct to_kept;

struct to_kept_set {
  struct to_kept **bucket;
  size_t buckets, n;
};

struct to_stack_store {
  struct tb_mem *mem;
  uint64_t seed;
  struct to_kept_set texts, frames, stacks;
  uint64_t users;          /* so far */
  uint64_t turns;          /* generations of all tables so far */
  struct to_stack_recent { /* a cache of the stacks that tables found last, by the id's low bits */
    uint64_t id, turn;     /* turn: number of the table's generation; 0: a free place */
    uint32_t index;        /* in the table */
  } recent[TO_STACK_RECENT];
  /* A cache of frames, by counter: most stacks differ in few of their frames. */
  struct to_kept *recent_frame[1 << TO_STACK_FRAME_BITS];
};

struct to_stack_user {
  struct to_stack_store *store;
  struct tb_mem *mem; /* pays */
  uint64_t number;
  size_t added; /* bytes stored at its expense so far */
};

/* When all users have left, it has no memory. */
void to_stack_store_init(struct to_stack_store *store, struct tb_mem *mem);

static inline uint64_t to_stack_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ (hash >> 29);
}

/* Returns the frame that equals this one; NULL: not stored. */
const struct to_frame *to_stack_store_find(const struct to_stack_user *by,
                                           const struct to_frame *frame);
/* Stores a stack of n frames. *out_cost: bytes that it took when it was first stored, with what was new of its frames and texts. */
TB_MUST tb_rc to_stack_store_keep(struct to_stack_user *by, const struct to_frame *frame, size_t n,
                                  const struct to_callstack **out, size_t *out_cost);
/* Returns the hash of a stored stack's counters, mixed one by one into the seed; if a counter is 0, of all frames' addresses after them. */
uint64_t to_callstack_hash(const struct to_callstack *stack);
/* Returns true if a frame of the stack has no name yet. */
bool to_stack_is_unnamed(const struct to_callstack *stack);
/* Gives unnamed frames of a stack the names that frame[] has for their counters, in place, for all of the user's stacks with
 * such a frame. Adds the number of frames that got one to *named. */
TB_MUST tb_rc to_stack_store_name(struct to_stack_user *by, const struct to_callstack *stack,
                                  const struct to_frame *frame, size_t n, uint32_t *named);
/* Ends the use of stacks that by kept. */
void to_stack_store_leave(struct to_stack_user *by, const struct to_callstack *const *stack,
                          size_t n);

#endif
