/* SPDX-License-Identifier: Apache-2.0 */
/* G7, I23: generations in any order, and no table is left behind. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "event/view.h"
#include "support/order_text.h"
#include "support/patience.h"
#include "support/seeds.h"
#include "trace/cache.h"

enum { GENERATIONS = 12, ALLOCS = TT_LESS(1000, 100), EVENTS = ALLOCS + 3, HEADER = 16 };

/* Twelve generations: goroutine 1 runs on in each, and each has a string and a thousand events of its own. */
struct scene {
  struct tb_mem mem; /* of the trace */
  struct tb_buf trace;
  struct to_place place[GENERATIONS];
  struct tb_mem room;
  struct to_cache *cache;
};

static void begin(struct scene *scene, size_t room_bytes) {
  static char text[GENERATIONS * 64 << 10];
  size_t at = (size_t)snprintf(text, sizeof text, "Trace Go1.26\n");

  for (int gen = 1; gen <= GENERATIONS; gen++) {
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "EventBatch gen=%d m=0 time=%d\nProcStatus dt=1 p=0 pstatus=1\n"
                           "GoStatus dt=1 g=1 m=0 gstatus=2\n",
                           gen, gen * 10000);
    for (int i = 0; i < ALLOCS; i++)
      at +=
          (size_t)snprintf(text + at, sizeof text - at, "HeapAlloc dt=1 heapalloc_value=%d\n", gen);
  }
  tb_mem_init(&scene->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&scene->trace, &scene->mem);
  tt_trace_bytes(text, &scene->mem, &scene->trace);
  cr_assert_eq(tt_generations(scene->trace.data, scene->trace.len, scene->place, GENERATIONS),
               GENERATIONS);
  tb_mem_init(&scene->room, tb_mem_libc, NULL, room_bytes);
  cr_assert_eq(to_cache_new(&scene->room, scene->trace.data, HEADER, scene->place, GENERATIONS,
                            &scene->cache),
               TB_OK);
}

static void end(struct scene *scene) {
  to_cache_free(scene->cache);
  cr_assert_eq(scene->room.bytes, 0, "%zu bytes left", scene->room.bytes);
  tb_buf_fini(&scene->trace);
  cr_assert_eq(scene->mem.bytes, 0);
}

static void expect(struct scene *scene, size_t i) {
  struct to_ordered part;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene->cache, i, &diag, &part), TB_OK, "%zu: %s", i, diag.text);
  cr_assert_eq(to_generation_number(part.gen), i + 1);
  cr_assert_eq(part.count, EVENTS);
  cr_assert_eq(part.events[0].type, TW_EV_SYNC);
  cr_assert_eq(part.events[EVENTS - 1].args[0], i + 1);
  to_cache_return(scene->cache, i);
}

Test(cache, any_generation_can_be_had_in_any_order_and_is_kept) {
  struct scene scene;

  begin(&scene, SIZE_MAX);
  for (size_t i = GENERATIONS; i-- > 0;) expect(&scene, i);
  cr_assert_eq(to_cache_kept(scene.cache), GENERATIONS);
  size_t bytes = scene.room.bytes;
  for (size_t i = 0; i < GENERATIONS; i++) expect(&scene, i * 5 % GENERATIONS);
  cr_assert_eq(scene.room.bytes, bytes, "nothing is ordered twice");
  end(&scene);
}

static size_t room_for_one(void) {
  struct scene scene;

  begin(&scene, SIZE_MAX);
  expect(&scene, 0);
  size_t bytes = scene.room.bytes_peak;
  end(&scene);
  return bytes;
}

Test(cache, where_room_is_short_the_one_asked_for_longest_ago_goes) {
  struct to_ordered held, again;
  struct scene scene;
  struct tb_diag diag;

  size_t one = room_for_one();
  begin(&scene, one * 3);
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene.cache, 0, &diag, &held), TB_OK);
  for (int round = 0; round < 3; round++)
    for (size_t i = 1; i < GENERATIONS; i++) expect(&scene, i);
  cr_assert_leq(scene.room.bytes_peak, one * 3);
  size_t kept = to_cache_kept(scene.cache);
  cr_assert(kept >= 2 && kept < GENERATIONS, "%zu are kept", kept);
  cr_assert_eq(held.events[EVENTS - 1].args[0], 1, "what is borrowed stays");
  cr_assert_eq(to_cache_borrow(scene.cache, 0, &diag, &again), TB_OK);
  cr_assert_eq(again.events, held.events);
  to_cache_return(scene.cache, 0);
  to_cache_return(scene.cache, 0);
  for (size_t i = 1; i < GENERATIONS; i++) expect(&scene, i);
  end(&scene);
}

Test(cache, a_generation_that_does_not_fit_is_refused_and_the_others_still_come) {
  struct to_ordered part, other;
  struct scene scene;
  struct tb_diag diag;

  size_t one = room_for_one();
  begin(&scene, one + one / 8);
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene.cache, 3, &diag, &part), TB_OK);
  cr_assert_eq(to_cache_borrow(scene.cache, 4, &diag, &other), TB_BUDGET);
  cr_assert_not_null(strstr(diag.text, "does not fit"), "%s", diag.text);
  to_cache_return(scene.cache, 3);
  expect(&scene, 4);
  cr_assert_eq(to_cache_kept(scene.cache), 1);
  end(&scene);
}

Test(cache, a_broken_generation_and_a_missing_place_are_told) {
  struct to_ordered part;
  struct scene scene;
  struct tb_diag diag;

  begin(&scene, SIZE_MAX);
  memset(scene.trace.data + scene.place[5].offset + scene.place[5].bytes / 2, 0, 8);
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene.cache, 5, &diag, &part), TB_BROKEN);
  cr_assert_neq(diag.text[0], '\0');
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene.cache, GENERATIONS, &diag, &part), TB_NOTFOUND);
  cr_assert_eq(to_cache_kept(scene.cache), 0);
  expect(&scene, 6);
  to_cache_free(scene.cache);
  scene.place[7].bytes = 0;
  cr_assert_eq(
      to_cache_new(&scene.room, scene.trace.data, HEADER, scene.place, GENERATIONS, &scene.cache),
      TB_OK);
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_borrow(scene.cache, 7, &diag, &part), TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "no generation"), "%s", diag.text);
  end(&scene);
}

/* Every header version: before 1.26 a generation ends where its bytes end. */
Test(cache, real_generations_of_each_version_come_whole) {
  struct tt_pack seeds = tt_seeds_load();
  size_t several = 0;

  for (size_t i = 0; i < seeds.n; i++) {
    struct to_place place[GENERATIONS];
    struct to_cache *cache;
    struct tb_diag diag;
    struct tb_mem room;
    size_t n = tt_generations(seeds.input[i].data, seeds.input[i].len, place, GENERATIONS);
    tb_mem_init(&room, tb_mem_libc, NULL, SIZE_MAX);
    tb_diag_clear(&diag);
    cr_assert_eq(to_cache_new(&room, seeds.input[i].data, HEADER, place, n, &cache), TB_OK);
    for (size_t g = n; g-- > 0;) {
      struct to_ordered part;
      cr_assert_eq(to_cache_borrow(cache, g, &diag, &part), TB_OK, "seed %zu: %s", i, diag.text);
      cr_assert_gt(part.count, 3);
      cr_assert_leq(to_generation_start(part.gen), part.events[0].time);
    }
    several += n > 1;
    for (size_t g = 0; g < n; g++) to_cache_return(cache, g);
    to_cache_free(cache);
    cr_assert_eq(room.bytes, 0);
  }
  cr_assert_geq(several, 4);
  tt_pack_free(&seeds);
}

enum { DEPTH = 128 };

static uint64_t stack_of(const struct to_event *ev) {
  uint64_t id = to_event_stack(ev);
  return id == TO_NO_STACK ? 0 : id;
}

/* Whether two stacks have the same frames, and that their hashes say so. */
static bool same(const struct to_ordered *a, uint64_t a_id, const struct to_ordered *b,
                 uint64_t b_id) {
  uint64_t a_pc[DEPTH], b_pc[DEPTH];
  size_t n = to_stack_pcs(a->gen, a_id, a_pc, DEPTH);

  if (n == 0 || n != to_stack_pcs(b->gen, b_id, b_pc, DEPTH)) return false;
  if (memcmp(a_pc, b_pc, n * sizeof a_pc[0]) != 0) return false;
  cr_assert_eq(to_stack_hash(a->gen, a_id), to_stack_hash(b->gen, b_id));
  return true;
}

/* I11: ids start over with each generation, hashes do not. */
Test(cache, a_stack_has_the_same_hash_in_each_generation) {
  enum { SEVERAL_GENERATIONS = 11 }; /* in the table of seeds.sh */
  struct tt_pack seeds = tt_seeds_load();
  const struct tt_input *trace = &seeds.input[SEVERAL_GENERATIONS];
  struct to_place place[GENERATIONS];
  size_t n = tt_generations(trace->data, trace->len, place, GENERATIONS), met = 0, other_ids = 0;
  struct to_ordered first, second;
  struct to_cache *cache;
  struct tb_diag diag;
  struct tb_mem room;

  cr_assert_geq(n, 2);
  tb_mem_init(&room, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_cache_new(&room, trace->data, HEADER, place, n, &cache), TB_OK);
  cr_assert_eq(to_cache_borrow(cache, 0, &diag, &first), TB_OK);
  cr_assert_eq(to_cache_borrow(cache, 1, &diag, &second), TB_OK);
  for (size_t i = 0; i < first.count; i += TT_LESS(1, 6))
    for (size_t k = 0; k < second.count; k++) {
      uint64_t a = stack_of(&first.events[i]), b = stack_of(&second.events[k]);
      if (a == 0 || b == 0 || !same(&first, a, &second, b)) continue;
      met++;
      other_ids += a != b;
    }
  cr_assert(met > 0 && other_ids > 0, "%zu met, %zu by other ids", met, other_ids);
  cr_assert_eq(to_stack_hash(first.gen, 0), 0);
  to_cache_return(cache, 0);
  to_cache_return(cache, 1);
  to_cache_free(cache);
  tt_pack_free(&seeds);
}
