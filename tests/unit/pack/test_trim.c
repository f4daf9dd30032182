/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that a collector sends may be smaller than those that an analysis made. */
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

  swap_rows(types, 0, 1); /* the row with a share is cut off */
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

/* A row of no length has no minimum. */
Test(trim, the_rest_has_the_least_minimum_of_its_rows) {
  enum { SERVED = 1, FAILED };

  for (size_t first = 1; first <= 2; first++) {
    Tracecollect__V1__StreamReport *report = tt_toy_report();
    Table *stacks = report->report->tables[BY_STACK];
    swap_rows(stacks, 1, first);
    tp_report_trim(report, 1);
    cr_assert_eq(stacks->n_rows, 2);
    cr_expect_eq(stacks->rows[1]->values[SERVED]->distribution->min_ns, 5);
    cr_expect_eq(stacks->rows[1]->values[FAILED]->distribution->count, 1);
    cr_expect_eq(stacks->rows[1]->values[FAILED]->distribution->min_ns, 20);
    tt_toy_report_free();
  }
}
