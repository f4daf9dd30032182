/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "online/spans/lock_table.h"
#include "unit/online/analysis/fake_generation.h"
#include "wire/locks.h"

enum { FIRST = 100 }; /* strings of locks */

static struct tb_mem mem;
static struct to_lock_table table;
static struct to_generation gen;
static struct to_experimental batch;
static unsigned char room[TW_WRITE_ROOM];

static void open_table(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_lock_table_init(&table, &mem);
}

static void close_table(void) {
  to_lock_table_fini(&table);
  cr_assert_eq(mem.bytes, 0);
}

/* A generation that names n locks, at these addresses; `name`, if any, is the name of the first
 * lock. */
static void generation(const uint64_t *object, size_t n, const char *name, uint64_t missed) {
  struct tw_batch head = { .gen = 1, .experiment = TW_EXPERIMENT_ALLOC_FREE }, read;
  struct tb_diag diag = { 0 };
  struct tw_write w;
  size_t used;

  tw_write_open(&w, room, sizeof room, 26, &head);
  cr_assert_eq(tw_write_locks(&w, missed), TB_OK);
  for (size_t i = 0; i < n; i++)
    cr_assert_eq(tw_write_lock(&w, &(struct tw_lock){ FIRST + i, object[i], 70 + i,
                                                      i == 0 && name != NULL ? 1 : 0 }),
                 TB_OK);
  size_t bytes = tw_write_close(&w);
  cr_assert_eq(tw_batch_read(room, bytes, &diag, &read, &used), TB_OK);
  batch = (struct to_experimental){ read.experiment, -1, read.data, read.len, 0 };
  gen = (struct to_generation){ .string = { [1] = name },
                                .experimental = &batch,
                                .experimentals = 1 };
  cr_assert_eq(to_lock_table_generation(&table, &gen), TB_OK);
}

static uint32_t number(uint64_t string, int64_t wanted_holder) {
  uint32_t found;
  int64_t holder;

  cr_assert_eq(to_lock_table_find(&table, string, &found, &holder), TB_OK);
  cr_assert_eq(holder, wanted_holder);
  return found;
}

static const char *label(uint32_t lock) {
  static char text[TO_LOCK_LABEL_MAX];

  cr_assert_eq(to_lock_table_label(&table, lock, text), strlen(text));
  return text;
}

Test(lock_table, a_lock_keeps_its_number_and_learns_its_name) {
  open_table();
  cr_assert_eq(number(FIRST, TO_NONE), TO_LOCK_NONE, "no generation yet");
  generation((uint64_t[]){ 0xa0, 0xb0 }, 2, NULL, 3);
  uint32_t a = number(FIRST, 70), b = number(FIRST + 1, 71);
  cr_assert_neq(a, b);
  cr_assert_eq(number(5, TO_NONE), TO_LOCK_NONE);
  cr_assert_str_eq(label(a), "0xa0");
  generation((uint64_t[]){ 0xb0, 0xa0 }, 2, "b_lock", 4);
  cr_assert_eq(number(FIRST, 70), b);
  cr_assert_eq(number(FIRST + 1, 71), a);
  cr_assert_str_eq(label(b), "b_lock");
  generation((uint64_t[]){ 0xb0 }, 1, "b_lock+0x0", 0);
  cr_assert_eq(number(FIRST, 70), b);
  cr_assert_str_eq(label(b), "b_lock+0x0");
  cr_assert_eq(table.missed, 7);
  cr_assert_str_eq(label(TO_LOCK_NONE), "");
  cr_assert_str_eq(label(TO_LOCK_OTHER), "other");
  close_table();
}

Test(lock_table, namesakes_have_their_addresses_too) {
  open_table();
  generation((uint64_t[]){ 0xa0 }, 1, "lock", 0);
  uint32_t a = number(FIRST, 70);
  generation((uint64_t[]){ 0xb0 }, 1, "lock", 0);
  uint32_t b = number(FIRST, 70);
  cr_assert_str_eq(label(a), "lock");
  cr_assert_str_eq(label(b), "lock@0xb0");
  generation((uint64_t[]){ 0xa0 }, 1, "other_lock", 0);
  cr_assert_eq(number(FIRST, 70), a);
  generation((uint64_t[]){ 0xc0 }, 1, "lock", 0);
  cr_assert_str_eq(label(number(FIRST, 70)), "lock", "the name is free again");
  close_table();
}

Test(lock_table, a_long_name_is_cut) {
  char name[TO_LOCK_NAME_MAX + 50];

  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  open_table();
  generation((uint64_t[]){ 0xa0 }, 1, name, 0);
  cr_assert_eq(strlen(label(number(FIRST, 70))), TO_LOCK_NAME_MAX);
  generation((uint64_t[]){ UINT64_MAX }, 1, name, 0);
  cr_assert_eq(strlen(label(number(FIRST, 70))), TO_LOCK_NAME_MAX + strlen("@0xffffffffffffffff"));
  close_table();
}

Test(lock_table, locks_beyond_so_many_are_others) {
  static uint64_t object[TO_LOCK_TABLE_MAX + 2];

  for (size_t i = 0; i < TO_LOCK_TABLE_MAX + 2; i++) object[i] = 0x1000 + 64 * i;
  open_table();
  generation(object, TO_LOCK_TABLE_MAX + 2, NULL, 0);
  for (uint64_t i = 0; i < TO_LOCK_TABLE_MAX + 2; i++)
    cr_assert_eq(number(FIRST + i, (int64_t)(70 + i)) == TO_LOCK_OTHER, i >= TO_LOCK_TABLE_MAX);
  cr_assert_gt(number(FIRST, 70), TO_LOCK_OTHER);
  close_table();
}

/* Each allocation fails in turn: what is known is kept, and all memory is freed at the end. */
Test(lock_table, it_may_run_out_of_memory) {
  tb_rc rc = TB_BUDGET;

  for (uint64_t left = 0; rc != TB_OK; left += 8) {
    uint32_t found;
    int64_t holder;
    tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
    to_lock_table_init(&table, &mem);
    generation((uint64_t[]){ 0xa0, 0xb0 }, 2, "lock", 0);
    mem.bytes_max = mem.bytes + left;
    rc = to_lock_table_find(&table, FIRST, &found, &holder);
    if (rc == TB_OK) rc = to_lock_table_find(&table, FIRST + 1, &found, &holder);
    close_table();
  }
}
