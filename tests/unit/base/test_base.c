/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/map.h"

Test(base, crc32c_of_the_standard_check_string) {
  cr_assert_eq(tb_crc32c(0, "123456789", 9), 0xE3069283u);
  cr_assert_eq(tb_crc32c(tb_crc32c(0, "1234", 4), "56789", 5), 0xE3069283u);
}

Test(base, crc32c_of_two_pieces_joins_without_their_bytes) {
  static unsigned char bytes[70000];

  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  for (size_t cut = 0; cut < sizeof bytes; cut += 997) {
    uint32_t joined =
        tb_crc32c_join(tb_crc32c(7, bytes, cut), tb_crc32c(0, bytes + cut, sizeof bytes - cut),
                       sizeof bytes - cut);
    cr_assert_eq(joined, tb_crc32c(7, bytes, sizeof bytes));
  }
}

Test(base, crc32c_joins_any_length_as_it_joins_its_parts) {
  for (unsigned bit = 0; bit < 63; bit++) {
    uint64_t whole = UINT64_C(0x123456789abcdef) >> (62 - bit), part = whole / 3;
    uint32_t once = tb_crc32c_join(0xdecade, 0, whole);
    uint32_t twice = tb_crc32c_join(tb_crc32c_join(0xdecade, 0, part), 0, whole - part);
    cr_assert_eq(once, twice, "%" PRIu64 " bytes", whole);
  }
}

/* Computed bit by bit, as the definition is. */
static uint32_t crc_by_definition(const unsigned char *p, size_t n) {
  uint32_t crc = UINT32_MAX;

  for (; n > 0; p++, n--) {
    crc ^= *p;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

Test(base, crc32c_of_any_length_is_the_definitions) {
  static unsigned char bytes[20000];

  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * i >> 3 ^ i);
  for (size_t n = 0; n < sizeof bytes; n += n < 64 ? 1 : n / 7)
    cr_assert_eq(tb_crc32c(0, bytes + n % 13, n - n % 13),
                 crc_by_definition(bytes + n % 13, n - n % 13), "length %zu", n);
  cr_assert_eq(tb_crc32c(0, bytes, 3 * 1024), crc_by_definition(bytes, 3 * 1024));
  cr_assert_eq(tb_crc32c(0, bytes, 6 * 1024 + 5), crc_by_definition(bytes, 6 * 1024 + 5));
}

Test(base, a_map_keeps_every_entry_through_growth_and_removal) {
  struct tb_mem mem;
  struct tb_map map;
  uint64_t *value;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&map, &mem, 12345);
  for (uint64_t i = 0; i < 10000; i++) {
    cr_assert_eq(tb_map_put(&map, i << 20, &value, NULL), TB_OK);
    *value = i;
  }
  for (uint64_t i = 0; i < 10000; i += 2) cr_assert(tb_map_remove(&map, i << 20));
  cr_assert_eq(map.count, 5000);
  for (uint64_t i = 0; i < 10000; i++) {
    value = tb_map_find(&map, i << 20);
    if (i % 2 == 0)
      cr_assert_null(value);
    else
      cr_assert_eq(*value, i);
  }
  tb_map_fini(&map);
  cr_assert_eq(mem.bytes, 0);
}

/* Returns the largest number of used slots in a row, over which a search walks. */
static size_t longest_walk(const struct tb_map *map) {
  size_t longest = 0, now = 0;

  for (size_t i = 0; i < map->slots; i++) {
    now = map->full[i] ? now + 1 : 0;
    if (now > longest) longest = now;
  }
  return longest;
}

/* Keys whose halves cancel each other out: all had one slot, whatever the seed. */
Test(base, chosen_keys_do_not_meet_in_a_map) {
  enum { KEYS = 40000 };

  for (uint64_t seed = 1; seed < UINT64_C(1) << 60; seed = seed * 77 + 1) {
    struct tb_mem mem;
    struct tb_map map;
    tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
    tb_map_init(&map, &mem, seed);
    for (uint64_t i = 0; i < KEYS; i++)
      cr_assert_eq(tb_map_put(&map, i << 48 | i << 16, &(uint64_t *){ NULL }, NULL), TB_OK);
    cr_assert_eq(map.count, KEYS);
    cr_assert_lt(longest_walk(&map), KEYS / 8, "seed %lu: %zu", (unsigned long)seed,
                 longest_walk(&map));
    tb_map_fini(&map);
  }
}

Test(base, an_arena_keeps_to_its_budget_and_gives_everything_back) {
  struct tb_mem mem;
  struct tb_arena arena;
  void *p;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tb_arena_init(&arena, &mem, 64 << 10);
  while (tb_arena_alloc(&arena, 1000, &p) == TB_OK) memset(p, 1, 1000);
  cr_assert_leq(mem.bytes, 1 << 20);
  cr_assert_gt(mem.bytes, 900 << 10);
  tb_arena_reset(&arena);
  cr_assert_leq(mem.bytes, 65 << 10);
  cr_assert_eq(tb_arena_alloc(&arena, SIZE_MAX, &p), TB_BUDGET);
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

Test(base, a_failed_append_sticks) {
  struct tb_mem mem;
  struct tb_buf buf;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1000);
  tb_buf_init(&buf, &mem);
  for (int i = 0; i < 1000; i++) tb_buf_printf(&buf, "%d,", i);
  cr_assert_eq(buf.rc, TB_BUDGET);
  cr_assert_leq(buf.len, 1000);
  tb_buf_fini(&buf);
  cr_assert_eq(mem.bytes, 0);
}

Test(base, a_diag_names_the_place_and_keeps_the_first_fault) {
  struct tb_diag diag;
  char text[300];

  tb_diag_clear(&diag);
  tb_diag_place(&diag, 3, 71, 4711);
  cr_assert_eq(tb_fail(&diag, TB_BROKEN, "goroutine %d started twice", 5), TB_BROKEN);
  cr_assert_eq(tb_fail(&diag, TB_IO, "later"), TB_IO);
  tb_diag_format(&diag, text, sizeof text);
  cr_assert_str_eq(text, "generation 3, thread 71, offset 4711: goroutine 5 started twice");
  diag.offset = TB_NO_OFFSET;
  tb_diag_format(&diag, text, sizeof text);
  cr_assert_str_eq(text, "generation 3, thread 71: goroutine 5 started twice");
  diag.thread = TB_NO_THREAD;
  tb_diag_format(&diag, text, sizeof text);
  cr_assert_str_eq(text, "generation 3: goroutine 5 started twice");
}

Test(base, every_result_has_a_name_and_a_text_and_what_is_none_says_so) {
#define TB_RESULT(name, num, cls, text)                                                            \
  cr_assert_str_eq(tb_rc_name(TB_##name), #name);                                                  \
  cr_assert_gt(strlen(tb_rc_text(TB_##name)), 1);
#include "base/result.def"
#undef TB_RESULT
  cr_assert_str_eq(tb_rc_name((tb_rc)9999), "UNKNOWN");
}

/* On a thread with a keeper a failed check is counted and its first place is stored. In this way
 * the agent, which runs in other people's programs, turns itself off. */
Test(base, a_failed_check_is_noted_where_somebody_keeps_them) {
  struct tb_keeper keeper = { 0 }, *before = tb_check_keep(&keeper);

  cr_assert_null(before);
  cr_assert(TB_CHECK(1 + 1 == 2));
  cr_assert_eq(keeper.failed, 0);
  cr_assert_not(TB_CHECK(keeper.failed == 7));
  cr_assert_not(TB_CHECK(keeper.failed == 8));
  cr_assert_eq(keeper.failed, 2);
  cr_assert_not_null(strstr(keeper.where, "test_base.c: keeper.failed == 7"));
  cr_assert_eq(tb_check_keep(NULL), &keeper);
}
