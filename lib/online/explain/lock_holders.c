/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/lock_holders.h"

#include <stdlib.h>
#include <string.h>

#include "online/spans/state.h"

static void add_wait(const struct to_life *g, struct to_held_lock *held) {
  if (held->waiting++ == 0 || g->since < held->since) held->since = g->since;
  if (held->waiting > 1 && g->since < held->newest) return;
  held->newest = g->since;
  held->holder = g->holder;
}

/* Collects the locks that are waited for. place: by lock number, 1 + its index in held; 0: none. */
static size_t find_waits(const struct to_spans *s, uint32_t *place, struct to_held_lock *held) {
  size_t n = 0;

  for (uint32_t slot = 0; slot < s->slots_end; slot++) {
    const struct to_life *g = &s->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING || g->lock <= TO_LOCK_OTHER) continue;
    if (place[g->lock] == 0) {
      if (n == TO_HELD_MAX) continue;
      held[n] = (struct to_held_lock){ .lock = g->lock, .holder = TO_NONE, .goroutine = TO_NONE };
      place[g->lock] = (uint32_t)++n;
    }
    add_wait(g, &held[place[g->lock] - 1]);
  }
  return n;
}

static int64_t thread_of(const struct to_life *g) {
  if (g->life == 0) return TO_NONE;
  if (g->state == TO_GO_WAITING) return g->last_thread;
  return g->state == TO_GO_RUNNING || g->state == TO_GO_SYSCALL ? g->thread : TO_NONE;
}

static int by_holder(const void *x, const void *y) {
  int64_t a = ((const struct to_held_lock *)x)->holder,
          b = ((const struct to_held_lock *)y)->holder;

  return a < b ? -1 : a > b;
}

static int by_lock(const void *x, const void *y) {
  uint32_t a = ((const struct to_held_lock *)x)->lock, b = ((const struct to_held_lock *)y)->lock;

  return a < b ? -1 : a > b;
}

/* Prefers a goroutine that runs or is in a call to those that wait, and among these the one that waited last. */
static bool is_better(const struct to_spans *s, const struct to_held_lock *held,
                      const struct to_life *g) {
  if (!held->is_found) return true;
  bool had_left = held->state == TO_GO_WAITING, has_left = g->state == TO_GO_WAITING;
  if (had_left != has_left) return had_left;
  return g->since > s->lives[held->slot].since;
}

/* Returns the first lock that this thread holds; NULL: none. */
static struct to_held_lock *first_of(struct to_held_lock *held, size_t n, int64_t holder) {
  size_t begin = 0, end = n;

  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (held[middle].holder < holder)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < n && held[begin].holder == holder ? &held[begin] : NULL;
}

/* Looks each thread's goroutine up once, even if the thread holds several locks. */
static void find_holders(const struct to_spans *s, struct to_held_lock *held, size_t n) {
  qsort(held, n, sizeof *held, by_holder);
  for (uint32_t slot = 0; slot < s->slots_end; slot++) {
    const struct to_life *g = &s->lives[slot];
    int64_t thread = thread_of(g);
    struct to_held_lock *at = thread == TO_NONE ? NULL : first_of(held, n, thread);
    if (at == NULL || !is_better(s, at, g)) continue;
    at->is_found = true;
    at->slot = slot;
    at->goroutine = g->id;
    at->state = g->state;
  }
  for (size_t i = 1; i < n; i++) {
    if (held[i].holder != held[i - 1].holder) continue;
    held[i].is_found = held[i - 1].is_found;
    held[i].slot = held[i - 1].slot;
    held[i].goroutine = held[i - 1].goroutine;
    held[i].state = held[i - 1].state;
  }
  qsort(held, n, sizeof *held, by_lock);
}

tb_rc to_lock_holders(const struct to_spans *s, struct tb_arena *arena,
                      const struct to_held_lock **out, size_t *out_n) {
  struct to_held_lock *held;
  uint32_t *place;

  *out_n = 0;
  if (s->locks.n == 0) return TB_OK;
  TB_TRY(tb_arena_alloc(arena, s->locks.n * sizeof *place, &place));
  TB_TRY(tb_arena_alloc(arena, TO_HELD_MAX * sizeof *held, &held));
  memset(place, 0, s->locks.n * sizeof *place);
  *out_n = find_waits(s, place, held);
  if (*out_n > 0) find_holders(s, held, *out_n);
  *out = held;
  return TB_OK;
}
