/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "pack/report.h"
#include "pack/report_read.h"
#include "proto/report.pb-c.h"
#include "unit/online/analysis/fake_generation.h"

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Distribution Distribution;

static const struct to_generation gen = {
  .number = 3,
  .string = { [1] = "start trace", [2] = "so \xff odd" },
  .stack = { [1] = { { 100, 7,
                       "re\xc3\x28"
                       "ad",
                       "io.c" },
                     { 200, 9, "main\xe2\x82\xac", "main.c" } } },
};

static void feed_some(struct tt_analyses *t) {
  TT_FEED(t, &gen, .time = 1, .m = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC, .args = { 1 });
  TT_FEED(t, &gen, .time = 5, .m = 1, .p = 1, .g = TO_NONE, .slot = 1, .type = TW_EV_GO_STATUS,
          .args = { 5, 1, TW_GO_RUNNING });
  TT_FEED(t, &gen, .time = 10, .m = 1, .p = 1, .g = 5, .type = TW_EV_GO_SYSCALL_BEGIN,
          .args = { 1, 1 });
  TT_FEED(t, &gen, .time = 20, .m = 1, .g = 5, .type = TW_EV_GO_SYSCALL_END_BLOCKED);
  TT_FEED(t, &gen, .time = 30, .m = 1, .g = 5, .type = TW_EV_GO_SYSCALL_BEGIN, .args = { 1, 0 });
  TT_FEED(t, &gen, .time = 31, .m = 2, .g = 6, .type = TW_EV_STW_BEGIN, .args = { 2, 1 });
  TT_FEED(t, &gen, .time = 39, .m = 2, .g = 6, .type = TW_EV_STW_END);
  TT_FEED(t, &gen, .time = 40, .m = 2, .g = 6, .type = TW_EV_HEAP_ALLOC);
}

static Tracecollect__V1__StreamReport *pack_and_unpack(struct tt_analyses *t,
                                                       enum to_analysis_kind kind) {
  static const unsigned char stream[16] = { 1, 2, 3, [15] = 16 };
  struct tp_report_about about = {
    .stream = stream, .service = "shop", .instance = "a:1", .broken_generations = 4
  };
  struct tb_buf buf;

  tb_buf_init(&buf, &t->mem);
  tb_buf_text(&buf, "before");
  cr_assert_eq(tp_report_pack(t->a, kind, TO_WINDOW_1MIN, 10, &about, &buf), TB_OK);
  cr_assert_eq(memcmp(buf.data, "before", 6), 0, "it appends");
  Tracecollect__V1__StreamReport *r =
      tracecollect__v1__stream_report__unpack(NULL, buf.len - 6, buf.data + 6);
  tb_buf_fini(&buf);
  cr_assert_not_null(r);
  cr_assert_str_eq(r->service, "shop");
  cr_assert_str_eq(r->instance, "a:1");
  cr_assert_eq(r->stream.len, 16);
  cr_assert_eq(r->stream.data[15], 16);
  cr_assert_str_eq(r->kind, to_analysis_name(kind));
  cr_assert_str_eq(r->window, "1m");
  cr_assert_eq(r->broken_generations, 4);
  cr_assert_eq(r->events, 8);
  cr_assert_eq(r->first_gen, 3);
  cr_assert_eq(r->from_ns, 1);
  cr_assert_eq(r->until_ns, 40);
  return r;
}

/* Returns a column of the table's only row. */
static const Value *only(const Report *report, const char *name, const char *column) {
  struct tp_table table;

  cr_assert(tp_report_table(report, name, &table));
  cr_assert_eq(table.table->n_rows, 1);
  const Value *value = tp_row_value(table.table->rows[0], tp_table_column(&table, column));
  cr_assert_not_null(value);
  return value;
}

Test(report, system_calls_go_through_the_message_whole) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10, 100);
  feed_some(&t);
  Tracecollect__V1__StreamReport *r = pack_and_unpack(&t, TO_ANALYSIS_SYSCALL);
  const Report *report = r->report;
  const Distribution *blocked = tp_value_distribution(tp_report_figure(report, "blocked"));
  cr_assert_eq(blocked->total_ns, 10);
  cr_assert_eq(blocked->p99_ns, 10);
  const Value *stack = only(report, "by_stack", "stack");
  cr_assert_eq(tp_stack_length(report, stack), 2);
  cr_assert_str_eq(tp_stack_frame(report, stack, 0)->function, "re\xEF\xBF\xBD(ad",
                   "what is not UTF-8 is replaced");
  cr_assert_str_eq(tp_stack_frame(report, stack, 1)->function, "main\xe2\x82\xac");
  cr_assert_eq(tp_stack_frame(report, stack, 1)->line, 9);
  cr_assert_eq(only(report, "blocked_now", "goroutine")->number, 5);
  cr_assert_eq(only(report, "blocked_now", "age_ns")->number, 10);
  cr_assert_eq(only(report, "blocked_now", "lost_proc")->number, 0);
  cr_assert_eq(tp_value_number(tp_report_option(report, "blocked_after_ns")), 10);
  tracecollect__v1__stream_report__free_unpacked(r, NULL);
  tt_analyses_close(&t);
}

Test(report, stops_go_through_the_message_whole) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10, 100);
  feed_some(&t);
  Tracecollect__V1__StreamReport *r = pack_and_unpack(&t, TO_ANALYSIS_STW);
  const Report *report = r->report;
  cr_assert_str_eq(only(report, "by_reason", "reason")->text, "so \xEF\xBF\xBD odd");
  cr_assert_str_eq(only(report, "by_reason", "id")->text, "/stw/other/so-odd");
  cr_assert_eq(only(report, "by_goroutine", "goroutine")->number, 6);
  cr_assert_eq(tp_stack_length(report, only(report, "by_goroutine", "stack")), 2);
  cr_assert_float_eq(tp_value_share(tp_report_figure(report, "wall_share")), 8.0 / 39, 1e-9);
  tracecollect__v1__stream_report__free_unpacked(r, NULL);
  tt_analyses_close(&t);
}

Test(report, every_failed_allocation_leaves_the_buffer_as_it_was) {
  struct tp_report_about about = { 0 };
  struct tt_analyses t;
  struct tb_mem small;
  struct tb_buf buf;
  tb_rc rc;

  tt_analyses_open(&t, 10, 100);
  feed_some(&t);
  for (size_t budget = 16;; budget += 64) {
    tb_mem_init(&small, tb_mem_libc, NULL, budget);
    tb_buf_init(&buf, &small);
    rc = tp_report_pack(t.a, TO_ANALYSIS_SYSCALL, TO_WINDOW_ALL, 10, &about, &buf);
    size_t len = buf.len;
    tb_buf_fini(&buf);
    cr_assert_eq(small.bytes, 0);
    if (rc == TB_OK) break;
    cr_assert_eq(rc, TB_BUDGET);
    cr_assert_eq(len, 0);
  }
  tt_analyses_close(&t);
}
