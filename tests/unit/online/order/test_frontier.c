/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier beside the plainest heap there is, with the moves of Go's reader: a new entry rises
 * past later ones; an entry that has become later falls below the earlier of its children, the left
 * one if both have the same time. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/order/frontier.h"

enum { THREADS_MAX = 40, MOVES = 20000 };

struct scene {
  struct tb_mem mem;
  struct to_order order;
  struct to_thread threads[THREADS_MAX];
  struct to_heap_entry plain[THREADS_MAX];
  size_t len;
  uint64_t random;
};

static uint64_t next_random(struct scene *s) { /* splitmix64 */
  uint64_t z = s->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static void swap(struct scene *s, size_t i, size_t j) {
  struct to_heap_entry kept = s->plain[i];
  s->plain[i] = s->plain[j];
  s->plain[j] = kept;
}

static void rise(struct scene *s, size_t i) {
  for (; i > 0 && s->plain[(i - 1) / 2].time > s->plain[i].time; i = (i - 1) / 2)
    swap(s, i, (i - 1) / 2);
}

static void fall(struct scene *s, size_t i) {
  for (;;) {
    size_t first = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->len; child++)
      if (s->plain[child].time < s->plain[first].time) first = child;
    if (first == i) return;
    swap(s, i, first);
    i = first;
  }
}

static struct scene *scene_of(size_t threads, uint64_t seed) {
  struct scene *s = calloc(1, sizeof *s);

  cr_assert_not_null(s);
  s->random = seed;
  tb_mem_init(&s->mem, tb_mem_libc, NULL, SIZE_MAX);
  s->order.mem = &s->mem;
  s->order.sample_time = INT64_MAX;
  cr_assert_eq(to__frontier_reserve(&s->order, threads), TB_OK);
  for (size_t i = 0; i < threads; i++) {
    s->threads[i].time = (to_ns)(next_random(s) % 8);
    to__frontier_add(&s->order, &s->threads[i]);
    s->plain[s->len++] = (struct to_heap_entry){ s->threads[i].time, &s->threads[i] };
    rise(s, s->len - 1);
  }
  return s;
}

static void scene_free(struct scene *s) {
  to__frontier_fini(&s->order);
  cr_assert_eq(s->mem.bytes, 0);
  free(s);
}

static to_ns earliest_child(const struct scene *s) {
  to_ns time = INT64_MAX;

  for (size_t i = 1; i <= 2 && i < s->len; i++)
    if (s->plain[i].time < time) time = s->plain[i].time;
  return time;
}

static void expect_the_same(const struct scene *s, size_t move) {
  cr_assert_eq(s->order.frontier_len, s->len);
  for (size_t i = 0; i < s->len; i++) {
    struct to_heap_entry is = s->order.frontier[i], want = s->plain[i];
    cr_assert_eq(is.value, want.value, "place %zu after move %zu", i, move);
    cr_assert_eq(is.time, want.time, "place %zu after move %zu", i, move);
  }
  cr_assert_eq(s->order.turn_end, earliest_child(s), "after move %zu", move);
}

/* There are few different times, so most moves meet an entry of equal time. */
static void moves_of(size_t threads) {
  struct scene *s = scene_of(threads, threads);

  expect_the_same(s, 0);
  for (size_t move = 1; move <= MOVES; move++) {
    struct to_thread *root = to__frontier_at(&s->order, 0);
    root->time += (to_ns)(next_random(s) % 4);
    s->plain[0].time = root->time;
    fall(s, 0);
    if (root->time > s->order.turn_end) {
      cr_assert_eq(frontier_root_later(&s->order, root, root->time), s->plain[0].value, "move %zu",
                   move);
    } else {
      to__frontier_update(&s->order, 0);
    }
    expect_the_same(s, move);
  }
  scene_free(s);
}

Test(frontier, threads_of_equal_time_take_turns_as_in_go) {
  for (size_t threads = 1; threads <= THREADS_MAX; threads++) moves_of(threads);
}

/* Entries are removed from any place, as when a thread has no event left. */
Test(frontier, a_thread_that_is_removed_leaves_the_others_as_in_go) {
  for (size_t threads = 1; threads <= THREADS_MAX; threads++) {
    struct scene *s = scene_of(threads, threads);
    while (s->len > 0) {
      size_t place = next_random(s) % s->len;
      to__frontier_remove(&s->order, place);
      for (; place > 0; place = (place - 1) / 2) swap(s, place, (place - 1) / 2);
      s->plain[0] = s->plain[--s->len];
      fall(s, 0);
      expect_the_same(s, s->len);
    }
    scene_free(s);
  }
}
