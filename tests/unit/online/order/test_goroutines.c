/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>

#include "base/map.h"
#include "online/order/goroutines.h"
#include "support/patience.h"

static struct tb_mem mem;
static struct to_goroutines gs;
static uint64_t state;

static void set_up(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to__goroutines_init(&gs, &mem);
  state = 88172645463325252;
}

static uint64_t random_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * UINT64_C(0x2545F4914F6CDD1D);
}

static void remove_all(void) {
  size_t from = 0;

  for (struct to_g *g; (g = to__goroutines_any(&gs, &from)) != NULL;) to__goroutines_remove(&gs, g);
}

static void tear_down(void) {
  remove_all();
  to__goroutines_fini(&gs);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(goroutines, .init = set_up, .fini = tear_down);

static struct to_g *add(int64_t id) {
  struct to_g *g;

  cr_assert_eq(to__goroutines_add(&gs, id, &g), TB_OK);
  cr_assert_eq(g->id, id);
  cr_assert_eq(g->status, TO_G_GONE);
  return g;
}

static size_t longest_chain(void) {
  size_t longest = 0;

  for (size_t i = 0; i <= gs.mask; i++) {
    size_t n = 0;
    for (const struct to_g *g = gs.buckets[i]; g != NULL; g = g->next) n++;
    if (n > longest) longest = n;
  }
  return longest;
}

/* Ids as Go assigns them, with a few random ones. Half of the goroutines end. */
Test(goroutines, those_that_were_added_are_found_and_no_others) {
  struct tb_map known;
  uint64_t id, value, *place;

  tb_map_init(&known, &mem, 7);
  for (int round = 0; round < TT_LESS(200000, 20000); round++) {
    bool anywhere = random_number() % 16 == 0;
    id = anywhere ? random_number() : (uint64_t)round / 2 + random_number() % 64;
    struct to_g *found = to__goroutines_find(&gs, (int64_t)id);
    const uint64_t *have = tb_map_find(&known, id);
    cr_assert_eq((uintptr_t)found, have == NULL ? 0 : (uintptr_t)*have);
    if (found != NULL) {
      to__goroutines_remove(&gs, found);
      cr_assert(tb_map_remove(&known, id));
    } else {
      cr_assert_eq(tb_map_put(&known, id, &place, NULL), TB_OK);
      *place = (uintptr_t)add((int64_t)id);
    }
    cr_assert_eq(gs.count, known.count);
  }
  for (size_t i = 0; tb_map_next(&known, &i, &id, &value);)
    cr_assert_eq((uintptr_t)to__goroutines_find(&gs, (int64_t)id), (uintptr_t)value);
  tb_map_fini(&known);
}

Test(goroutines, neighbours_do_not_collide) {
  for (int64_t id = 1; id <= 8000; id++) add(id);
  cr_assert_leq(longest_chain(), 2, "at most where two windows meet");
}

enum { MANY = 100000, SECRETS = 8, UNLUCKY_MAX = 2 };

/* Makes a new table, with a new secret. The chains of ids that are far apart depend on the secret. Returns the longest chain. */
static size_t longest_with_a_new_secret(unsigned shift, const char *what) {
  to__goroutines_fini(&gs);
  to__goroutines_init(&gs, &mem);
  size_t before = mem.bytes;
  for (uint64_t i = 1; i <= MANY; i++) add((int64_t)(shift == 0 ? random_number() : i << shift));
  cr_assert_leq((mem.bytes - before) / MANY, 64, "%s: %zu", what, (mem.bytes - before) / MANY);
  size_t longest = longest_chain();
  remove_all();
  return longest;
}

/* The status of a goroutine has at least five bytes, so its cost must be bounded. One secret in some hundreds makes chains of
 * such ids that are longer than the limit, but the sender does not know the secret. */
Test(goroutines, wherever_the_ids_lie_one_costs_at_most_64_bytes) {
  static const struct {
    const char *what;
    unsigned shift; /* id = number << shift; 0: any id */
  } kinds[] = {
    { "random", 0 }, { "multiples of 2^13", 13 }, { "of 2^20", 20 }, { "of 2^40", 40 }
  };

  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
    size_t limit = kinds[kind].shift == 40 ? 64 : 24, unlucky = 0;
    for (int i = 0; i < SECRETS; i++)
      unlucky += longest_with_a_new_secret(kinds[kind].shift, kinds[kind].what) > limit;
    cr_assert_leq(unlucky, UNLUCKY_MAX, "%s: %zu of %d", kinds[kind].what, unlucky, SECRETS);
  }
}

Test(goroutines, memory_is_given_back_as_they_end) {
  struct to_g *one = add(5);

  size_t before = mem.bytes;
  for (int64_t id = 100; id < 100000; id++) add(id);
  for (int64_t id = 100; id < 100000; id++)
    to__goroutines_remove(&gs, to__goroutines_find(&gs, id));
  cr_assert_leq(mem.bytes - before, 17 * 100000, "buckets alone");
  cr_assert_eq(to__goroutines_find(&gs, 5), one);
}

Test(goroutines, a_wave_like_the_one_before_needs_no_memory) {
  enum { WAVE = 3000 };

  for (int64_t id = 0; id < WAVE; id++) add(id);
  remove_all();
  mem.bytes_max = mem.bytes;
  for (int64_t id = WAVE; id < 2 * WAVE; id++) add(id);
  remove_all();
  mem.bytes_max = SIZE_MAX;
}

Test(goroutines, no_memory_is_no_goroutine) {
  struct to_g *g;

  for (int64_t id = 0; id < 1000; id++) add(id);
  mem.bytes_max = mem.bytes;
  tb_rc rc = TB_OK;
  for (int64_t id = 1000; rc == TB_OK && id < 3000; id++) rc = to__goroutines_add(&gs, id, &g);
  cr_assert_eq(rc, TB_BUDGET);
  mem.bytes_max = SIZE_MAX;
  for (int64_t id = 0; id < 1000; id++) cr_assert_eq(to__goroutines_find(&gs, id)->id, id);
}
