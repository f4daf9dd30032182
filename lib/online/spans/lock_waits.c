/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/lock_waits.h"

#include <string.h>

#include "base/grow.h"
#include "online/spans/state.h"

enum { STACK_BITS = 21, WHY_BITS = 5, LOCK_BITS = 13, ENTRY_BITS = 14 };
_Static_assert(TO_REASONS <= 1 << WHY_BITS, "a reason fits");
_Static_assert(TO_LOCK_NUMBERS <= 1 << LOCK_BITS, "a lock fits");
_Static_assert(TO_ENTRIES_MAX <= 1 << ENTRY_BITS, "an entry fits");
_Static_assert(WHY_BITS + 2 * STACK_BITS + ENTRY_BITS <= 64, "all but the lock is a word");

static uint64_t pair_of(unsigned why, uint32_t stack, uint32_t by_stack) {
  return ((uint64_t)why << STACK_BITS | stack) << STACK_BITS | by_stack;
}

tb_rc to_lock_waits_init(struct to_lock_waits *w, struct tb_mem *mem, struct to_windows *windows,
                         struct to_stack_table *stacks, struct to_span_sums *sums) {
  *w = (struct to_lock_waits){ .mem = mem, .windows = windows, .stacks = stacks, .sums = sums };
  tb_map_init(&w->by_key, mem, tb_seed());
  tb_map_init(&w->pairs, mem, tb_seed());
  TB_TRY(to_queues_init(&w->queues, mem, windows, stacks));
  return to_windows_series(windows, TO_NO_SERIES, &w->parent);
}

void to_lock_waits_fini(struct to_lock_waits *w) {
  if (w->mem == NULL) return;
  tb_mem_free(w->mem, w->sum, w->room * sizeof *w->sum);
  tb_mem_free(w->mem, w->of_lock, w->locks * sizeof *w->of_lock);
  tb_map_fini(&w->by_key);
  tb_map_fini(&w->pairs);
  to_queues_fini(&w->queues);
  *w = (struct to_lock_waits){ 0 };
}

/* Finds the lock's own series, or makes it. The fewer series a parent has, the longer it keeps its quantiles. */
static tb_rc find_parent(struct to_lock_waits *w, uint32_t lock, uint32_t *out) {
  while (w->locks <= lock) {
    size_t room = w->locks;
    TB_TRY(TB_MEM_GROW(w->mem, w->of_lock, room, w->locks));
    memset(w->of_lock + w->locks, 0, (room - w->locks) * sizeof *w->of_lock);
    w->locks = room;
  }
  if (w->of_lock[lock] == 0) TB_TRY(to_windows_series(w->windows, w->parent, &w->of_lock[lock]));
  *out = w->of_lock[lock];
  return TB_OK;
}

static tb_rc add_sum(struct to_lock_waits *w, const struct to_lock_sum *like) {
  struct to_lock_sum sum = *like;
  uint32_t parent;

  TB_TRY(TB_MEM_GROW(w->mem, w->sum, w->room, w->n));
  TB_TRY(find_parent(w, like->lock, &parent));
  if (like->lock != TO_LOCK_NONE)
    TB_TRY(tb_map_put(&w->pairs, pair_of(like->why, like->stack, like->by_stack),
                      &(uint64_t *){ NULL }, NULL));
  TB_TRY(to_windows_series(w->windows, parent, &sum.series));
  w->sum[w->n++] = sum;
  return TB_OK;
}

/* Hashes a sum, whose key is longer than a word. After a collision, the next free key is used. */
static uint64_t key_of(const struct to_lock_sum *sum) {
  uint64_t rest = pair_of(sum->why, sum->stack, sum->by_stack) << ENTRY_BITS | sum->by_entry;

  return rest ^ (uint64_t)sum->lock * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_like(const struct to_lock_sum *a, const struct to_lock_sum *b) {
  return a->lock == b->lock && a->stack == b->stack && a->by_stack == b->by_stack &&
         a->by_entry == b->by_entry && a->why == b->why;
}

static tb_rc find_sum(struct to_lock_waits *w, const struct to_lock_sum *like, uint32_t *out) {
  uint64_t key = key_of(like), *place;

  *out = 0;
  if (w->n == 0)
    TB_TRY(add_sum(w, &(struct to_lock_sum){ .lock = TO_LOCK_OTHER,
                                             .stack = TO_STACK_OTHER,
                                             .by_stack = TO_STACK_OTHER,
                                             .by_entry = TO_ENTRY_OTHER }));
  while ((place = tb_map_find(&w->by_key, key)) != NULL && !is_like(&w->sum[*place], like)) key++;
  if (place == NULL && w->n > TO_LOCK_SUMS_MAX) return TB_OK;
  if (place == NULL) {
    TB_TRY(tb_map_put(&w->by_key, key, &place, NULL));
    *place = w->n;
    tb_rc rc = add_sum(w, like);
    if (rc != TB_OK) {
      tb_map_remove(&w->by_key, key);
      return rc;
    }
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static struct to_lock_recent *recent_of(struct to_lock_waits *w, const struct to_span *wait,
                                        uint64_t what) {
  uint64_t hash = wait->stack * 31 + wait->by_stack * 7 + wait->lock * 5 + what * 3;

  return &w->recent[hash % TO_LOCK_RECENT];
}

tb_rc to_lock_waits_take(struct to_lock_waits *w, const struct to_generation *gen,
                         const struct to_span *wait, uint32_t by_slot) {
  uint32_t entry = by_slot < w->sums->goroutines ? w->sums->goroutine[by_slot].entry : 0;
  uint64_t what = (uint64_t)w->stacks->epoch << 32 | (entry + 1) << WHY_BITS | wait->reason;
  struct to_lock_recent *recent = recent_of(w, wait, what);

  if (recent->what != what || recent->stack != wait->stack || recent->by_stack != wait->by_stack ||
      recent->lock != wait->lock) {
    struct to_lock_sum like = { .lock = wait->lock, .by_entry = entry, .why = wait->reason };
    TB_TRY(to__stack_number(w->stacks, gen, wait->stack, &like.stack));
    TB_TRY(to__stack_number(w->stacks, gen, wait->by_stack, &like.by_stack));
    recent->what = 0;
    TB_TRY(find_sum(w, &like, &recent->sum));
    recent->stack = wait->stack;
    recent->by_stack = wait->by_stack;
    recent->lock = wait->lock;
    recent->what = what;
  }
  return to_windows_add(w->windows, w->sum[recent->sum].series, wait->from, wait->until, 0,
                        !wait->from_known);
}

bool to_lock_waits_has_pair(const struct to_lock_waits *w, unsigned why, uint32_t stack,
                            uint32_t by_stack) {
  return w->n > 0 && tb_map_find(&w->pairs, pair_of(why, stack, by_stack)) != NULL;
}

const struct to_lock_sum *to_lock_waits_next(const struct to_lock_waits *w,
                                             const struct to_view *view,
                                             const struct to_lock_sum *sum) {
  const struct to_lock_sum *end = w->sum + w->n;

  for (sum = sum == NULL ? w->sum : sum + 1; sum != end; sum++)
    if (to_view_cell(view, sum->series) != NULL) return sum;
  return NULL;
}
