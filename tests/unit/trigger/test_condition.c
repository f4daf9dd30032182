/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "pack/trim.h"
#include "tools/tracectl/term/format_units.h"
#include "trigger/condition.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__ReportSchema schema;

static tb_rc parse(const char *text, struct tb_diag *diag, struct tr_condition *out) {
  schema *const schemas[] = { (schema *)(uintptr_t)tt_toy_schema() };

  tb_diag_clear(diag);
  return tr_condition_parse(text, schemas, 1, diag, out);
}

static enum tr_verdict verdict_at_top(const char *text, size_t rows) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tr_condition condition;
  struct tb_diag diag;

  cr_assert_eq(parse(text, &diag, &condition), TB_OK, "%s: %s", text, diag.text);
  tp_report_trim(report, rows);
  struct tr_number number;
  enum tr_verdict verdict = tr_condition_judge_message(&condition, report, &number);
  tt_toy_report_free();
  return verdict;
}

static bool met(const char *text) {
  return verdict_at_top(text, 0) == TR_VERDICT_MET;
}

static void refused(const char *text, const char *why) {
  struct tr_condition condition;
  struct tb_diag diag;

  cr_assert_eq(parse(text, &diag, &condition), TB_BROKEN, "%s", text);
  cr_assert_not_null(strstr(diag.text, why), "%s: %s", text, diag.text);
}

Test(condition, compares_figures_of_each_type) {
  cr_assert(met("orders.served.p99 >= 2ms"));
  cr_assert(met("orders.served.p99_ns<=0.002s"));
  cr_assert_not(met("orders.served.p99 > 2000us"));
  cr_assert(met(" orders.served.count == 13"));
  cr_assert(met("orders.served.count!=11"));
  cr_assert(met("orders.served.mean > 230us"));
  cr_assert(met("orders.served.min == 5ns"));
  cr_assert(met("orders.served.lower_bounds == 2"));
  cr_assert(met("orders.queued >= 1"));
  cr_assert(met("orders.heap > 2.5 MiB"));
  cr_assert(met("orders.heap_bytes == 3145728"));
  cr_assert(met("orders.idle > 12%"));
  cr_assert_not(met("orders.idle_share > 0.125"));
  cr_assert(met("orders.paused == 1"));
}

Test(condition, a_table_is_the_rows_found_and_a_column_its_greatest_value) {
  cr_assert(met("orders.by_stack == 7"), "rows that are not listed count, too");
  cr_assert(met("orders.queued_now.age > 1.2ms"));
  cr_assert(met("orders.by_stack.retries == 4"), "the row of the rest is a sum");
  cr_assert(met("orders.by_stack.served.count == 3"));
  cr_assert(met("orders.by_type.served.p99 == 15ns"));
  cr_assert(met("orders.by_type.wait == 25%"), "a row without the value is passed over");
}

Test(condition, rows_that_a_report_cuts_are_counted_and_their_longest_is_kept) {
  for (size_t rows = 1; rows < 4; rows++) {
    cr_assert_eq(verdict_at_top("orders.by_stack == 7", rows), TR_VERDICT_MET);
    cr_assert_eq(verdict_at_top("orders.by_stack.served.max == 2ms", rows), TR_VERDICT_MET);
  }
}

static double error_of(const char *text) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tr_condition condition;
  struct tr_number number;
  struct tb_diag diag;

  cr_assert_eq(parse(text, &diag, &condition), TB_OK, "%s: %s", text, diag.text);
  cr_assert_eq(tr_condition_judge_message(&condition, report, &number), TR_VERDICT_MET);
  tt_toy_report_free();
  return number.error_share;
}

/* The error of a column is that of the row with the greatest value. */
Test(condition, only_a_quantile_has_an_error) {
  cr_assert_eq(error_of("orders.served.p50 == 10ns"), 0.0055);
  cr_assert_eq(error_of("orders.served.p999 > 1ms"), 0.0055);
  cr_assert_eq(error_of("orders.by_type.served.p90 == 15ns"), 0.0217);
  cr_assert_eq(error_of("orders.served.min < 1ms"), 0);
  cr_assert_eq(error_of("orders.served.mean > 1us"), 0);
  cr_assert_eq(error_of("orders.served.lower_bounds == 2"), 0);
  cr_assert_eq(error_of("orders.by_type.served.max == 15ns"), 0);
  cr_assert_eq(error_of("orders.by_stack == 7"), 0);
}

Test(condition, what_a_report_does_not_know_meets_nothing) {
  Tracecollect__V1__StreamReport other = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  struct tr_condition condition;
  struct tr_number number;
  struct tb_diag diag;

  cr_assert_eq(verdict_at_top("orders.lost != 3", 0), TR_VERDICT_UNKNOWN);
  cr_assert_eq(verdict_at_top("orders.by_stack.served.p99 != 3ms", 0), TR_VERDICT_UNKNOWN);
  cr_assert_eq(parse("orders.queued < 3", &diag, &condition), TB_OK);
  cr_assert_eq(tr_condition_judge_message(&condition, &other, &number), TR_VERDICT_ABSENT);
}

Test(condition, says_what_is_wrong_with_it) {
  refused("", "no figure");
  refused("orders > 3", "no figure");
  refused("orders.served > 3", "no figure");
  refused("orders.served.count.x > 3", "no figure");
  refused("orders.owner > 3", "no figure");
  refused("orders.by_stack.stack > 3", "no figure");
  refused("kind > 3", "--schema");
  refused("orders.served.p98 > 3ms", "near: orders.served.p90, orders.served.p99");
  refused("orders.queud_now > 3", "near: orders.queued_now");
  refused("orders.served.p99 3ms", "no comparison");
  refused("orders.served.p99 > ", "no value");
  refused("orders.served.count > nan", "no value");
  refused("orders.served.p99 > infs", "no value");
  refused("orders.idle < 1e999", "no value");
  refused("orders.served.p99 > 3", "unit");
  refused("orders.served.count > 3 apples", "unexpected \"apples\"");
  refused("orders.queued > 3 %", "unexpected");
}

Test(human, three_digits_and_a_unit) {
  static const struct {
    uint64_t ns;
    const char *text;
  } rows[] = { { 0, "-" },
               { 1, "1 ns" },
               { 999, "999 ns" },
               { 1000, "1.00 us" },
               { 9994, "9.99 us" },
               { 9996, "10.0 us" },
               { 999400, "999 us" },
               { 999600, "1.00 ms" },
               { 1234567, "1.23 ms" },
               { 45600000000, "45.6 s" },
               { 59940000000, "59.9 s" },
               { 60000000000, "1 min 0 s" },
               { 76300000000, "1 min 16 s" },
               { 3599600000000, "59 min 59 s" },
               { 3600000000000, "1 h 0 min" },
               { 7500000000000, "2 h 5 min" },
               { UINT64_MAX, "5124095 h 34 min" } };
  char text[TK_FORMAT_BYTES];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    cr_assert_str_eq(tk_format_ns(rows[i].ns, text), rows[i].text);
  cr_assert_str_eq(tk_format_count(0, text), "0");
  cr_assert_str_eq(tk_format_count(999, text), "999");
  cr_assert_str_eq(tk_format_count(1234567, text), "1,234,567");
  cr_assert_str_eq(tk_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}
