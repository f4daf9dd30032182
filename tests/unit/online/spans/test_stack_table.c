/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are copied from one table to another, and a table that is full. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/stacks/table.h"
#include "unit/online/analysis/fake_generation.h"

static struct tb_mem mem;
static struct to_stack_table table;

static void set_up(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_stack_table_init(&table, &mem, 100);
}

static void tear_down(void) {
  to_stack_table_fini(&table);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(stack_table, .init = set_up, .fini = tear_down);

static struct to_string text(const char *words) {
  return (struct to_string){ words, strlen(words) };
}

static struct to_frame frame(uint64_t pc, const char *function, uint64_t line) {
  return (struct to_frame){ .pc = pc, .line = line, .function = text(function), .file = text("f") };
}

/* Copies a stack of two frames, the innermost first. */
static uint32_t copy(struct to_frame inner, struct to_frame outer) {
  const struct to_frame *frames[] = { &inner, &outer };
  const struct to_callstack stack = { .len = 2, .frames = frames };
  uint32_t index;

  cr_assert_eq(to_stack_table_copy(&table, &stack, &index), TB_OK);
  return index;
}

static const char *innermost(uint32_t index) {
  return to_stack_table_stack(&table, index)->frames[0]->function.data;
}

Test(stack_table, a_copied_stack_is_known_by_its_counters) {
  uint32_t one = copy(frame(1, "read", 3), frame(2, "main", 4));

  cr_assert_gt(one, TO_STACK_OTHER);
  cr_assert_eq(copy(frame(1, "read", 3), frame(2, "main", 4)), one);
  cr_assert_neq(copy(frame(2, "main", 4), frame(1, "read", 3)), one);
  cr_assert_str_eq(innermost(one), "read");
  cr_assert_eq(to_stack_table_stack(&table, one)->len, 2);
}

Test(stack_table, where_there_is_no_counter_text_tells_copies_apart) {
  uint32_t one = copy(frame(0, "read", 3), frame(0, "main", 4));

  cr_assert_eq(copy(frame(0, "read", 3), frame(0, "main", 4)), one);
  cr_assert_neq(copy(frame(0, "read", 5), frame(0, "main", 4)), one);
}

Test(stack_table, a_copy_brings_a_name_that_was_not_known) {
  uint32_t one = copy(frame(7, "shop+0x1f", 0), frame(2, "main", 4));

  cr_assert_str_eq(innermost(one), "shop+0x1f");
  cr_assert_eq(copy(frame(7, "flush", 31), frame(2, "main", 4)), one);
  cr_assert_str_eq(innermost(one), "flush");
  cr_assert_eq(copy(frame(7, "shop+0x1f", 0), frame(2, "main", 4)), one);
  cr_assert_str_eq(innermost(one), "flush");
}

Test(stack_table, no_frames_no_stack_and_no_room) {
  const struct to_callstack empty = { 0 };
  uint32_t index;

  cr_assert_eq(to_stack_table_copy(&table, &empty, &index), TB_OK);
  cr_assert_eq(index, TO_STACK_EMPTY);
  cr_assert_eq(to_stack_table_copy(&table, NULL, &index), TB_OK);
  cr_assert_eq(index, TO_STACK_OTHER);
  for (uint64_t pc = 1; pc <= 100; pc++)
    cr_assert_gt(copy(frame(pc, "f", 1), frame(2, "main", 4)), TO_STACK_OTHER);
  cr_assert_eq(copy(frame(1000, "f", 1), frame(2, "main", 4)), TO_STACK_OTHER);
}

/* Stacks of the counters 1 to 4; the last two are those of 2 and of 1, the latter with one frame more. */
static const struct to_generation gen = {
  .stack = { [1] = { { 1, 1, "f", "f" }, { 9, 1, "main", "f" } },
             [2] = { { 2, 1, "f", "f" }, { 9, 1, "main", "f" } },
             [3] = { { 3, 1, "f", "f" }, { 9, 1, "main", "f" } },
             [4] = { { 4, 1, "f", "f" }, { 9, 1, "main", "f" } },
             [5] = { { 2, 1, "f", "f" }, { 9, 1, "main", "f" } },
             [6] = { { 1, 1, "f", "f" }, { 9, 1, "main", "f" }, { 8, 1, "exit", "f" } } },
};

static uint32_t find(struct to_stack_table *in, uint64_t id) {
  uint32_t index;

  cr_assert_eq(to_stack_table_find(in, &gen, id, &index), TB_OK);
  return index;
}

Test(stack_table, a_full_table_finds_its_own_stacks_and_no_others) {
  struct to_stack_table full;
  uint32_t stored[4];

  to_stack_table_init(&full, &mem, 3);
  for (uint64_t id = 1; id <= 3; id++) stored[id] = find(&full, id);
  for (int generation = 1; generation <= 2; generation++) {
    cr_expect_eq(find(&full, 4), TO_STACK_OTHER, "unknown");
    cr_expect_eq(find(&full, 6), TO_STACK_OTHER, "begins like a stored one");
    for (uint64_t id = 1; id <= 3; id++) {
      cr_expect_gt(stored[id], TO_STACK_OTHER);
      cr_expect_eq(find(&full, id), stored[id], "%d", (int)id);
    }
    cr_expect_eq(find(&full, 5), stored[2], "another id of a stored one");
    cr_expect_eq(find(&full, 7), TO_STACK_EMPTY, "no frames");
    to_stack_table_generation(&full);
  }
  to_stack_table_fini(&full);
}
