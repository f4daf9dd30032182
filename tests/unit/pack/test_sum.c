/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of slices is the sum of all parts at once. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/sum.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Distribution Distribution;

enum { MANY = 3 * TP_SUM_PARTS };
enum { SERVED, QUEUED };
enum { BY_STACK, BY_TYPE, QUEUED_NOW };

static struct tb_mem mem;
static struct tb_arena arena;
static struct tp_sum sum;
static StreamReport *toy;

static void open_sum(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  tp_sum_init(&sum, &mem, tp_merge, 1 << 20);
  toy = tt_toy_report();
}

static void close_sum(void) {
  tp_sum_fini(&sum);
  tb_arena_fini(&arena);
  tt_toy_report_free();
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(pack_sum, .init = open_sum, .fini = close_sum);

static void *packed(const StreamReport *report, size_t *out_len) {
  unsigned char *bytes;

  *out_len = tracecollect__v1__stream_report__get_packed_size(report);
  cr_assert_eq(tb_arena_alloc(&arena, *out_len, &bytes), TB_OK);
  tracecollect__v1__stream_report__pack(report, bytes);
  return bytes;
}

static tb_rc add(const StreamReport *report) {
  StreamReport *part;
  size_t len;
  const void *bytes = packed(report, &len);

  return tp_sum_add(&sum, bytes, len, &part);
}

/* Adds the toy as one of many instances. */
static void add_instance(unsigned i) {
  char name[16];

  snprintf(name, sizeof name, "host:%u", i);
  toy->instance = name;
  toy->report->figures[QUEUED]->number = i;
  cr_assert_eq(add(toy), TB_OK);
}

static StreamReport *sum_of_many(void) {
  StreamReport *out;

  for (unsigned i = 0; i < MANY; i++) add_instance(i);
  cr_assert_eq(sum.parts, MANY);
  cr_assert_eq(tp_sum_take(&sum, &arena, &out), TB_OK);
  return out;
}

Test(pack_sum, it_is_the_same_in_slices_of_any_size) {
  size_t len, len_of_pairs;
  const StreamReport *at_once = sum_of_many();
  const void *bytes = packed(at_once, &len);

  cr_expect_eq(at_once->instances, MANY);
  cr_expect_eq(at_once->report->figures[QUEUED]->number, MANY * (MANY - 1) / 2);
  tp_sum_fini(&sum);
  tp_sum_init(&sum, &mem, tp_merge, 0); /* each part is added on its own */
  const StreamReport *by_pairs = sum_of_many();
  const void *bytes_of_pairs = packed(by_pairs, &len_of_pairs);
  cr_assert_eq(len_of_pairs, len);
  cr_expect_eq(memcmp(bytes, bytes_of_pairs, len), 0);
}

Test(pack_sum, its_memory_does_not_grow_with_the_parts) {
  Tracecollect__V1__Table *queue = toy->report->tables[QUEUED_NOW];
  size_t few = 0, most = 0;

  queue->n_rows = 0; /* a sum has the rows of all lists, up to a limit */
  for (unsigned i = 0; i < 8 * TP_SUM_PARTS; i++) {
    StreamReport *part;
    size_t len;
    const void *bytes = packed(toy, &len);
    cr_assert_eq(tp_sum_add(&sum, bytes, len, &part), TB_OK);
    part->instance = part->kind; /* all of one name, so that the list of names is no excuse */
    tb_arena_reset(&arena);
    if (mem.bytes > most) most = mem.bytes;
    if (i == 3 * TP_SUM_PARTS) few = most;
  }
  cr_expect_leq(most, few + few / 8);
}

Test(pack_sum, of_one_part_it_is_the_part_and_of_none_there_is_none) {
  StreamReport *out;
  size_t len, len_of_sum;

  cr_assert_eq(tp_sum_take(&sum, &arena, &out), TB_OK);
  cr_expect_null(out);
  cr_assert_eq(add(toy), TB_OK);
  cr_assert_eq(tp_sum_take(&sum, &arena, &out), TB_OK);
  const void *bytes = packed(toy, &len), *of_sum = packed(out, &len_of_sum);
  cr_assert_eq(len, len_of_sum);
  cr_expect_eq(memcmp(bytes, of_sum, len), 0);
  cr_assert_eq(add(toy), TB_OK);
  tp_sum_clear(&sum);
  cr_assert_eq(tp_sum_take(&sum, &arena, &out), TB_OK);
  cr_expect_null(out);
}

/* The parts of the first slice have scale 6, a later one has scale 2 and fewer columns. */
Test(pack_sum, a_later_slice_may_be_coarser_and_narrower) {
  Distribution *served = toy->report->figures[SERVED]->distribution;
  StreamReport *out;

  served->scale = 6;
  for (unsigned i = 0; i <= TP_SUM_PARTS; i++) cr_assert_eq(add(toy), TB_OK);
  size_t columns = toy->report->schema->tables[BY_STACK]->n_columns--;
  served->scale = 2;
  served->offset >>= 4;
  cr_assert_eq(add(toy), TB_OK);
  cr_assert_eq(tp_sum_take(&sum, &arena, &out), TB_OK);
  toy->report->schema->tables[BY_STACK]->n_columns++;
  const Distribution *all = out->report->figures[SERVED]->distribution;
  cr_expect_eq(all->scale, 2);
  cr_expect_eq(all->count, (TP_SUM_PARTS + 2) * served->count);
  cr_expect_eq(out->report->schema->tables[BY_STACK]->n_columns, columns - 1);
  bool says = false;
  for (size_t i = 0; i < out->report->n_notes; i++)
    says |= strstr(out->report->notes[i], "several versions") != NULL;
  cr_expect(says);
}

Test(pack_sum, what_is_no_report_is_refused) {
  static const unsigned char noise[] = { 0xff, 0xff, 0xff, 1 };
  StreamReport *part, *out;
  char other[] = "other";

  cr_expect_eq(tp_sum_add(&sum, noise, sizeof noise, &part), TB_BUDGET);
  cr_assert_eq(add(toy), TB_OK);
  toy->kind = other;
  cr_assert_eq(add(toy), TB_OK);
  cr_expect_eq(tp_sum_take(&sum, &arena, &out), TB_CORRUPT);
}

Test(pack_sum, every_failed_allocation_gives_back_what_it_took) {
  size_t len;
  const void *bytes = packed(toy, &len);
  tb_rc rc = TB_BUDGET;

  for (size_t budget = 1024; rc != TB_OK; budget += 4096) {
    struct tb_mem small;
    struct tp_sum its;
    StreamReport *part;
    tb_mem_init(&small, tb_mem_libc, NULL, budget);
    tp_sum_init(&its, &small, tp_merge, 0);
    rc = TB_OK;
    for (unsigned i = 0; i < 4 && rc == TB_OK; i++) rc = tp_sum_add(&its, bytes, len, &part);
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
    tp_sum_fini(&its);
    cr_assert_eq(small.bytes, 0);
  }
}
