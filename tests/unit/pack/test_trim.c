/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector sends need not be what an analysis made. */
#include <criterion/criterion.h>

#include "pack/trim.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Table Table;

enum { BY_STACK, BY_TYPE };

static void swap_rows(Table *table, size_t a, size_t b) {
  Row *row = table->rows[a];

  table->rows[a] = table->rows[b];
  table->rows[b] = row;
}

Test(trim, the_row_of_the_rest_has_no_share_of_one_of_its_rows) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Table *types = report->report->tables[BY_TYPE];

  swap_rows(types, 0, 1); /* the one with a share is cut off */
  tp_report_trim(report, 1);
  cr_assert_eq(types->n_rows, 2);
  const Row *other = types->rows[1];
  cr_assert(other->other);
  cr_assert_eq(other->values[0]->is_case, TRACECOLLECT__V1__VALUE__IS__NOT_SET);
  cr_assert_eq(other->values[1]->distribution->count, 2);
  cr_assert_eq(other->values[2]->is_case, TRACECOLLECT__V1__VALUE__IS__NOT_SET);
  tt_toy_report_free();
}

Test(trim, a_sum_beyond_the_largest_number_is_the_largest_number) {
  static const int64_t last[] = { INT64_MAX, INT64_MIN };

  for (size_t i = 0; i < 2; i++) {
    Tracecollect__V1__StreamReport *report = tt_toy_report();
    Table *stacks = report->report->tables[BY_STACK];
    stacks->rows[1]->values[3]->number = last[i];
    stacks->rows[2]->values[3]->number = last[i];
    tp_report_trim(report, 1);
    cr_assert_eq(stacks->n_rows, 2);
    cr_assert_eq(stacks->rows[1]->values[3]->number, last[i]);
    tt_toy_report_free();
  }
}

Test(trim, the_rest_has_the_greatest_number_of_a_column_that_says_so) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Table *stacks = report->report->tables[BY_STACK];

  report->report->schema->tables[BY_STACK]->columns[3]->greatest = true;
  stacks->rows[1]->values[3]->number = 7;
  stacks->rows[2]->values[3]->number = 5;
  tp_report_trim(report, 1);
  cr_assert_eq(stacks->rows[1]->values[3]->number, 7);
  tt_toy_report_free();
}

Test(trim, rows_of_the_version_before_may_lack_their_sums) {
  Tracecollect__V1__SyscallStack stack[3], *stacks[3];
  Tracecollect__V1__StwStopper stopper[3], *stoppers[3];
  Tracecollect__V1__SyscallReport syscall = TRACECOLLECT__V1__SYSCALL_REPORT__INIT;
  Tracecollect__V1__StwReport stw = TRACECOLLECT__V1__STW_REPORT__INIT;
  Tracecollect__V1__StreamReport report = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  Tracecollect__V1__Sum sum = TRACECOLLECT__V1__SUM__INIT;

  for (size_t i = 0; i < 3; i++) {
    tracecollect__v1__syscall_stack__init(stacks[i] = &stack[i]);
    tracecollect__v1__stw_stopper__init(stoppers[i] = &stopper[i]);
  }
  sum.count = 3;
  stack[1].calls = &sum;
  syscall.stacks = stacks;
  stw.stoppers = stoppers;
  syscall.n_stacks = stw.n_stoppers = 3;
  report.syscall = &syscall;
  report.stw = &stw;
  tp_report_trim(&report, 1);
  cr_assert_eq(syscall.n_stacks, 2);
  cr_assert(stack[1].other);
  cr_assert_eq(stack[1].calls->count, 3);
  cr_assert_eq(stw.n_stoppers, 2);
  cr_assert(stopper[1].other);
}
