/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are copied from one table to another, and a table that is full. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/spans/stacks/table.h"
#include "unit/online/analysis/fake_generation.h"

static struct tb_mem mem;
static struct to_stack_table table;

static void set_up(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_stack_table_init(&table, &mem, 100, NULL);
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

  to_stack_table_init(&full, &mem, 3, NULL);
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

/* ---- tables that share a store ---- */

struct user {
  struct tb_mem mem;
  struct to_stack_table table;
};
struct sharing {
  struct tb_mem mem; /* the store's */
  struct to_stack_store store;
  struct user a, b;
};

static void join(struct user *u, struct sharing *s, size_t stacks_max) {
  tb_mem_init(&u->mem, tb_mem_libc, NULL, SIZE_MAX);
  to_stack_table_init(&u->table, &u->mem, stacks_max, &s->store);
}

static void leave(struct user *u) {
  to_stack_table_fini(&u->table);
  cr_assert_eq(u->mem.bytes, 0);
}

static void begin_sharing(struct sharing *s) {
  tb_mem_init(&s->mem, tb_mem_libc, NULL, SIZE_MAX);
  to_stack_store_init(&s->store, &s->mem);
  join(&s->a, s, 100);
  join(&s->b, s, 100);
}

static void end_sharing(struct sharing *s) {
  cr_assert_eq(s->mem.bytes, 0);
}

/* Adds a stack of two frames whose texts and counters the number chooses. */
static tb_rc add_numbered(struct user *u, unsigned number, uint32_t *out_index) {
  char inner[32], outer[32];

  snprintf(inner, sizeof inner, "inner%u", number);
  snprintf(outer, sizeof outer, "outer%u", number % 7);
  const struct to_frame frames[] = { frame(1000 + number, inner, 3),
                                     frame(1 + number % 7, outer, 4) };
  const struct to_frame *const pointers[] = { &frames[0], &frames[1] };
  return to_stack_table_copy(&u->table, &(struct to_callstack){ .len = 2, .frames = pointers },
                             out_index);
}

static uint32_t numbered(struct user *u, unsigned number) {
  uint32_t index;

  cr_assert_eq(add_numbered(u, number, &index), TB_OK);
  return index;
}

static const struct to_callstack *stack(const struct user *u, uint32_t index) {
  return to_stack_table_stack(&u->table, index);
}

Test(stack_store, equal_stacks_of_two_streams_are_stored_once) {
  struct sharing s;

  begin_sharing(&s);
  for (unsigned i = 0; i < 50; i++) numbered(&s.a, i);
  size_t alone = s.a.mem.bytes;
  for (unsigned i = 0; i < 50; i++) {
    uint32_t index = numbered(&s.b, 49 - i);
    cr_expect_eq(index, TO_STACK_OTHER + 1 + i, "numbered in the order of its own stream");
    cr_expect_eq(stack(&s.b, index), stack(&s.a, numbered(&s.a, 49 - i)));
  }
  cr_expect_eq(s.a.mem.bytes, alone);
  cr_expect_lt(s.b.mem.bytes, alone / 8);
  leave(&s.b);
  leave(&s.a);
  end_sharing(&s);
}

Test(stack_store, the_end_of_the_stream_that_paid_leaves_what_others_use) {
  struct sharing s;

  begin_sharing(&s);
  for (unsigned i = 0; i < 60; i++) numbered(&s.a, i);
  uint32_t index = numbered(&s.b, 5);
  size_t before = s.mem.bytes;
  leave(&s.a);
  cr_expect_str_eq(stack(&s.b, index)->frames[0]->function.data, "inner5");
  cr_expect_str_eq(stack(&s.b, index)->frames[1]->function.data, "outer5");
  cr_expect_gt(s.mem.bytes, before, "the store pays for one stack");
  cr_expect_lt(s.mem.bytes, before + 1024, "and for no other");
  cr_expect_eq(s.store.stacks.n, 1);
  cr_expect_eq(s.store.frames.n, 2);
  cr_expect_eq(s.store.texts.n, 3, "two functions, one file");
  leave(&s.b);
  cr_expect_eq(s.store.texts.n, 0);
  end_sharing(&s);
}

Test(stack_store, a_flood_is_bounded_and_evicts_nothing) {
  struct sharing s;
  uint32_t kept[20];

  begin_sharing(&s);
  for (unsigned i = 0; i < 20; i++) kept[i] = numbered(&s.b, i);
  for (unsigned i = 0; i < 100000; i++)
    cr_assert_leq(numbered(&s.a, 1000 + i), TO_STACK_OTHER + 101);
  cr_expect_eq(numbered(&s.a, 99999), TO_STACK_OTHER);
  cr_expect_lt(s.a.mem.bytes, 101 << 10);
  cr_expect_lt(s.store.stacks.n, 130);
  for (unsigned i = 0; i < 20; i++) {
    cr_expect_eq(numbered(&s.b, i), kept[i]);
    cr_expect_eq(stack(&s.b, kept[i])->frames[0]->pc, 1000 + i);
  }
  cr_expect_gt(numbered(&s.b, 500), TO_STACK_OTHER, "there is room for others");
  leave(&s.a);
  cr_expect_eq(s.store.stacks.n, 21);
  leave(&s.b);
  end_sharing(&s);
}

/* Each stack has texts of 8 KiB: the limit of bytes is met before that of stacks, also by a stream that adds none itself. */
Test(stack_store, long_texts_are_bounded_for_all_who_use_them) {
  static char text_of[8 << 10];
  struct sharing s;
  uint32_t index;

  begin_sharing(&s);
  memset(text_of, 'x', sizeof text_of);
  for (uint64_t pc = 1; pc < 90; pc++) {
    memcpy(text_of, &pc, sizeof pc);
    const struct to_frame one = { .pc = pc,
                                  .function = { text_of, sizeof text_of },
                                  .file = text("f") };
    const struct to_frame *const frames[] = { &one };
    for (unsigned i = 0; i < 2; i++) {
      cr_assert_eq(to_stack_table_copy(i == 0 ? &s.a.table : &s.b.table,
                                       &(struct to_callstack){ .len = 1, .frames = frames },
                                       &index),
                   TB_OK);
      cr_expect_eq(index == TO_STACK_OTHER, pc > 13, "%d", (int)pc);
    }
  }
  cr_expect_lt(s.a.mem.bytes, 128 << 10);
  leave(&s.a);
  cr_expect_lt(s.mem.bytes, 128 << 10);
  leave(&s.b);
  end_sharing(&s);
}

static uint32_t copy_one(struct user *u, struct to_frame one) {
  const struct to_frame *const frames[] = { &one };
  uint32_t index;

  cr_assert_eq(
      to_stack_table_copy(&u->table, &(struct to_callstack){ .len = 1, .frames = frames }, &index),
      TB_OK);
  return index;
}

static const char *function(const struct user *u, uint32_t index) {
  return stack(u, index)->frames[0]->function.data;
}

Test(stack_store, a_name_that_one_stream_learns_is_not_shown_by_another) {
  struct sharing s;

  begin_sharing(&s);
  uint32_t a = copy_one(&s.a, frame(7, "shop+0x1f", 0));
  uint32_t b = copy_one(&s.b, frame(7, "shop+0x1f", 0));
  const char *before = function(&s.a, a);
  cr_assert_eq(copy_one(&s.a, frame(7, "flush", 31)), a);
  cr_expect_str_eq(function(&s.a, a), "flush");
  cr_expect_str_eq(function(&s.b, b), "shop+0x1f");
  cr_assert_eq(copy_one(&s.b, frame(7, "drain", 31)), b);
  cr_expect_str_eq(function(&s.a, a), "flush");
  cr_expect_str_eq(function(&s.b, b), "drain");
  cr_expect_str_eq(before, "shop+0x1f", "entry functions are known by the text's address");
  leave(&s.a);
  cr_expect_str_eq(function(&s.b, b), "drain");
  leave(&s.b);
  end_sharing(&s);
}

Test(stack_store, programs_with_the_same_counters_show_their_own_functions) {
  struct sharing s;

  begin_sharing(&s);
  uint32_t a = copy_one(&s.a, frame(7, "main.read", 3)),
           b = copy_one(&s.b, frame(7, "main.write", 3));
  cr_expect_str_eq(function(&s.a, a), "main.read");
  cr_expect_str_eq(function(&s.b, b), "main.write");
  leave(&s.b);
  cr_expect_str_eq(function(&s.a, a), "main.read");
  leave(&s.a);
  end_sharing(&s);
}

Test(stack_store, a_budget_that_runs_out_changes_nothing) {
  struct sharing s;
  uint32_t index;
  unsigned refused = 0;

  begin_sharing(&s);
  numbered(&s.a, 1);
  numbered(&s.b, 2);
  for (size_t room = 0; room < 4096; room += 16) {
    size_t stacks = s.store.stacks.n, frames = s.store.frames.n, texts = s.store.texts.n;
    s.a.mem.bytes_max = s.a.mem.bytes + room;
    if (add_numbered(&s.a, 20, &index) == TB_OK) break;
    refused++;
    cr_expect_eq(s.store.stacks.n, stacks);
    cr_expect_eq(s.store.frames.n, frames);
    cr_expect_eq(s.store.texts.n, texts);
  }
  cr_expect_gt(refused, 5);
  cr_expect_gt(index, TO_STACK_OTHER);
  s.a.mem.bytes_max = SIZE_MAX;
  leave(&s.a);
  leave(&s.b);
  end_sharing(&s);
}

/* Ids of one table are not found in the other one's cache. */
Test(stack_store, an_id_means_the_stack_of_its_own_stream) {
  struct sharing s;

  begin_sharing(&s);
  uint32_t three = find(&s.a.table, 3);
  cr_expect_eq(find(&s.b.table, 1), three, "the first of its stream");
  cr_expect_eq(find(&s.b.table, 3), three + 1);
  cr_expect_eq(find(&s.a.table, 3), three);
  cr_expect_eq(find(&s.a.table, 1), three + 1);
  leave(&s.a);
  leave(&s.b);
  end_sharing(&s);
}
