/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/metrics/report_view.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/pack/toy_report.h"

static struct tb_mem mem;
static struct tb_arena arena;
static struct tc_report_view view;
static unsigned char bytes[8000];

static void setup(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tb_arena_init(&arena, &mem, 4096);
  tc_report_view_init(&view, &mem, &arena);
}

static void teardown(void) {
  tc_report_view_fini(&view);
  tb_arena_fini(&arena);
}

TestSuite(report_view, .init = setup, .fini = teardown);

static uint64_t thinned_events; /* if not 0, the last field of the report */

static struct tc_report pack_toy(void) {
  Tracecollect__V1__StreamReport *toy = tt_toy_report();

  toy->until_wall_ns = 1234567;
  toy->thinned_events = thinned_events;
  cr_assert_leq(tracecollect__v1__stream_report__get_packed_size(toy), sizeof bytes);
  size_t len = tracecollect__v1__stream_report__pack(toy, bytes);
  tt_toy_report_free();
  return (struct tc_report){ .bytes = bytes, .len = len };
}

Test(report_view, it_unpacks_what_is_named) {
  struct tp_table table;

  thinned_events = 345;
  struct tc_report packed = pack_toy();

  for (int round = 0; round < 2; round++) { /* the second round finds the schema in the table */
    cr_assert_eq(tc_report_view_open(&view, &packed), TB_OK);
    cr_assert_eq(view.schemas, 1);
    cr_expect_eq(view.until_wall_ns, 1234567);
    cr_expect_eq(view.events, 12345);
    cr_expect_eq(view.thinned_events, 345);
    cr_expect_eq(tp_value_number(tp_report_figure(view.report, "heap_bytes")), 3 << 20);
    cr_expect_null(view.report->tables[0]);
    cr_assert_eq(tc_report_view_table(&view, "by_stack", &table), TB_OK);
    cr_expect_eq(table.table->rows_total, 7);
    const Tracecollect__V1__Value *stack = tp_row_value(table.table->rows[0], 0);
    cr_expect_eq(tp_stack_length(view.report, stack), 0, "not unpacked yet");
    cr_assert_eq(tc_report_view_stack(&view, stack), TB_OK);
    cr_expect_str_eq(tp_stack_frame(view.report, stack, 1)->function, "shop.(*Till).serve");
    cr_expect_null(tp_stack_frame(view.report, stack, 2), "there is no frame 77");
    tb_arena_reset(&arena);
  }
}

Test(report_view, what_is_not_there_is_empty) {
  struct tc_report packed = pack_toy(), nothing = { .bytes = bytes };
  struct tp_table table;

  cr_assert_eq(tc_report_view_open(&view, &packed), TB_OK);
  cr_assert_eq(tc_report_view_table(&view, "by_day", &table), TB_OK);
  cr_expect_eq(table.table->n_rows, 0);
  cr_assert_eq(tc_report_view_table(&view, "queued_now", &table), TB_OK);
  cr_assert_eq(tc_report_view_stack(&view, tp_row_value(table.table->rows[0], 3)), TB_OK,
               "there is no stack 99");
  cr_assert_eq(tc_report_view_open(&view, &nothing), TB_OK);
  cr_assert_eq(tc_report_view_table(&view, "by_stack", &table), TB_OK);
  cr_expect_eq(table.table->n_rows, 0);
}

/* Every cut, and every byte replaced: the result is an error or fewer values, and no access out
 * of bounds. */
Test(report_view, broken_bytes_are_an_error) {
  struct tc_report packed = pack_toy();
  struct tp_table table;

  for (size_t len = 0; len < packed.len; len++) {
    struct tc_report cut = { .bytes = bytes, .len = len };
    if (tc_report_view_open(&view, &cut) == TB_OK) cr_expect_null(view.report->schema);
    tb_arena_reset(&arena);
  }
  for (size_t i = 0; i < packed.len; i++) {
    unsigned char was = bytes[i];
    bytes[i] ^= 0xff;
    if (tc_report_view_open(&view, &packed) == TB_OK &&
        tc_report_view_table(&view, "by_stack", &table) == TB_OK)
      for (size_t k = 0; k < table.table->n_rows; k++)
        (void)!tc_report_view_stack(&view, tp_row_value(table.table->rows[k], 0));
    bytes[i] = was;
    tb_arena_reset(&arena);
  }
}
