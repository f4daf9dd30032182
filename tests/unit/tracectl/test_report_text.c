/* SPDX-License-Identifier: Apache-2.0 */
/* A report of a kind that no analysis makes, as text and as CSV. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/trim.h"
#include "tools/tracectl/report/csv.h"
#include "tools/tracectl/report/output.h"
#include "tools/tracectl/report/schema_text.h"
#include "tools/tracectl/term/tracectl.h"
#include "unit/pack/toy_report.h"

static char *text;
static size_t bytes;

static FILE *begin(void) {
  FILE *out = open_memstream(&text, &bytes);
  cr_assert_not_null(out);
  return out;
}

static void expect_piece(const char *piece) {
  cr_expect_not_null(strstr(text, piece), "no\n%s\nin\n%s", piece, text);
}

static void print(const Tracecollect__V1__StreamReport *report, unsigned columns, unsigned frames) {
  FILE *out = begin();
  const struct tk_report_style style = { .out = out, .columns = columns, .frames = frames };

  tk_report_print(report, NULL, &style);
  fclose(out);
}

static void print_toy(unsigned columns, unsigned frames) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();

  print(report, columns, frames);
  tt_toy_report_free();
}

static void free_text(void) {
  free(text);
}

TestSuite(report_text, .fini = free_text);

Test(report_text, the_title_says_when_its_stream_ended) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();

  report->ended_wall_ns = UINT64_C(1700000000123000000);
  print(report, 100, 4);
  expect_piece("orders  shop/a:1  (ended 2023-11-14T22:13:20.123Z)\nwindow all: 1.00 s");
  tt_toy_report_free();
}

Test(report_text, figures_come_with_their_sentence) {
  print_toy(100, 4);
  expect_piece("orders  shop/a:1\nwindow all: 1.00 s, generations 1 to 3, 12,345 events\n");
  expect_piece("\n\nPrices? lack \"tax\".\nOpen the shop.\n\n");
  expect_piece("        count    total     mean");
  expect_piece("\nserved     13  3.00 ms   231 us");
  expect_piece("\n2 of served began before the first sync: their times are lower bounds.\n");
  expect_piece("\nheap          3.0 MiB  Live heap.\n");
  expect_piece("\nidle_share     12.5 %  Share of time without an order.\n");
  expect_piece("\nlost                -  Orders lost.\n");
  expect_piece("\nowner             a?b  Name of the shop's owner.\n");
  expect_piece("\nlate_after    10.0 ms  An order that waits for this long is late.\n");
}

/* The worst of all figures, and that of all rows if it is worse. */
Test(report_text, quantiles_come_with_their_error) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Tracecollect__V1__Distribution *figure = report->report->figures[0]->distribution;

  print(report, 100, 4);
  expect_piece(
      "\nQuantiles are off by at most 0.55 %, those of rows by 2.17 %.\n2 of served began");
  figure->n_buckets = 0;
  free(TB_MOVE(text));
  print(report, 100, 4);
  expect_piece("\nQuantiles of rows are off by at most 2.17 %.\n");
  figure->n_buckets = 1;
  report->report->tables[1]->n_rows = 0;
  free(TB_MOVE(text));
  print(report, 100, 4);
  expect_piece("\nQuantiles are off by at most 0.55 %.\n");
  figure->n_buckets = 0;
  free(TB_MOVE(text));
  print(report, 100, 4);
  cr_assert_null(strstr(text, "Quantiles"), "nothing is off: %s", text);
  tt_toy_report_free();
}

Test(report_text, tables_follow_their_schema) {
  print_toy(100, 4);
  expect_piece("\nBy stack: 2 of 7, most failures first\n");
  expect_piece("  shop.(*Till).serve  till.go:21  (in runtime.write)\n");
  expect_piece("  (stack unknown)\n");
  expect_piece("\n        (all others)\n");
  expect_piece("\nBy type: 2, most time first\n");
  expect_piece("\nQueued now: 1, oldest first\n");
  expect_piece("1.23 ms   yes  (stack unknown)\n");
}

/* The heading is "count", because there is one distribution. 0 ns is a time, and a missing key is unknown. */
Test(report_text, a_row_says_what_is_zero_and_what_is_unknown) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Tracecollect__V1__Row *small = report->report->tables[1]->rows[1];

  small->values[0]->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  small->values[1]->distribution->p50_ns = 0;
  print(report, 100, 4);
  expect_piece("\ntype           count    total     mean      p50      p90      p99      max");
  expect_piece("\n(unknown)          1     9 ns     9 ns     0 ns     9 ns     9 ns     9 ns");
  tt_toy_report_free();
}

Test(report_text, a_place_that_is_not_the_programs_has_what_its_goroutine_began_with) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  char *function = report->report->frames[1]->function, own[] = "net/http.serve";
  uint32_t *outermost = &report->report->stacks[1]->frames[2], unknown = *outermost;

  report->report->frames[1]->function = own;
  *outermost = 0;
  print(report, 100, 1);
  expect_piece("  http.serve  till.go:21  (from runtime.write)\n");
  free(TB_MOVE(text));
  print(report, 48, 1);
  expect_piece("  http.serve  (from runtime.write)\n");
  report->report->frames[1]->function = function;
  *outermost = unknown;
  tt_toy_report_free();
}

Test(report_text, of_several_stacks_those_are_shown_that_a_row_has) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Tracecollect__V1__Table *stacks = report->report->tables[0];

  report->report->schema->tables[0]->columns[3]->type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK;
  stacks->rows[0]->values[3]->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  print(report, 100, 4);
  expect_piece("stack    shop.(*Till).serve  till.go:21  (in runtime.write)\n");
  const char *first = strstr(text, "retries  (stack unknown)\n");
  cr_assert_not_null(first, "%s", text);
  cr_assert_null(strstr(first + 1, "retries  "), "%s", text);
  tt_toy_report_free();
}

Test(report_text, an_empty_table_says_so) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  size_t rows = report->report->tables[2]->n_rows;

  report->report->tables[2]->n_rows = 0;
  print(report, 100, 4);
  report->report->tables[2]->n_rows = rows;
  expect_piece("\nQueued now: none.\n");
  tt_toy_report_free();
}

static void infect(char **text_of) {
  static char escape[] = "\033[2J\xC2\x9B";
  *text_of = escape;
}

static void infect_fields(Tracecollect__V1__FieldSchema **field, size_t n) {
  for (size_t i = 0; i < n; i++) {
    infect(&field[i]->name);
    infect(&field[i]->about);
  }
}

/* A table with two stacks; each row shows their names. */
Test(report_text, a_collector_sends_a_terminal_no_control_characters) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  Tracecollect__V1__ReportSchema *schema = report->report->schema;

  schema->tables[2]->columns[0]->type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK;
  report->report->tables[1]->n_rows = 0;
  infect(&report->kind);
  infect(&report->service);
  infect(&report->window);
  infect_fields(schema->figures, schema->n_figures);
  infect_fields(schema->options, schema->n_options);
  for (size_t t = 0; t < schema->n_tables; t++) {
    infect(&schema->tables[t]->name);
    infect(&schema->tables[t]->about);
    infect(&schema->tables[t]->order);
    infect_fields(schema->tables[t]->columns, schema->tables[t]->n_columns);
  }
  print(report, 100, 4);
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
    cr_assert(*c == '\n' || (*c >= ' ' && *c < 0x7F), "%02x in\n%s", *c, text);
  tt_toy_report_free();
}

/* For each width other columns are chosen. */
Test(report_text, lines_fit_the_page) {
  for (unsigned columns = 60; columns < 200; columns++) {
    print_toy(columns, 0);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
      cr_expect_leq(strcspn(line, "\n"), columns, "%u: %s", columns, line);
    free(TB_MOVE(text));
  }
}

Test(report_text, a_schema_names_everything) {
  FILE *out = begin();
  const struct tk_report_style style = { .out = out, .columns = 100 };

  tk_schema_print(tt_toy_schema(), &style);
  fclose(out);
  expect_piece("orders: Time that orders take.\n\noptions\n  late_after_ns  ns ");
  expect_piece("\ntable by_stack: By stack, most failures first\n");
  expect_piece("  stack          stack         Key.\n");
  expect_piece("  retries        count\n");
}

static const char *csv_of(size_t table, size_t rows, bool is_live) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();

  FILE *out = begin();
  tp_report_trim(report, rows);
  tk_csv_head(out, tt_toy_schema()->tables[table], is_live);
  tk_csv_rows(out, report, tt_toy_schema()->tables[table], is_live);
  tt_toy_report_free();
  fclose(out);
  return text;
}

Test(report_text, csv_is_rfc_4180) {
  cr_expect_str_eq(csv_of(1, 0, true),
                   "service,instance,analysed_share,type,served_count,served_total_ns,served_min_"
                   "ns,served_max_ns,"
                   "served_p50_ns,served_p90_ns,served_p99_ns,served_p999_ns,served_error_share,"
                   "served_lower_bounds,wait_share,other\r\n"
                   "shop,a:1,1,\"large, \"\"fast\"\"\",2,20,5,15,5,15,15,15,0.0217,1,0.25,false\r\n"
                   "shop,a:1,1,small,1,9,9,9,9,9,9,9,0.0055,0,,false\r\n");
}

Test(report_text, csv_of_a_list_has_no_row_of_the_rest) {
  cr_expect_str_eq(csv_of(2, 0, false), "goroutine,age_ns,late,stack\r\n17,1234567,true,\r\n");
}

Test(report_text, csv_leaves_quantiles_that_were_not_kept_empty) {
  (void)csv_of(0, 1, false);

  expect_piece("\r\nruntime.write /go/write.go:8; shop.(*Till).serve /shop/till.go:21,"
               "3,3000000,100000,2000000,,,,,,0,2,500,100,400,,,,,,0,4,false\r\n");
  expect_piece("\r\n,10,160,5,70,,,,,,0,1,20,20,20,,,,,,0,5,true\r\n");
}

static Tracecollect__V1__Value *toy_type(Tracecollect__V1__StreamReport *report, size_t row) {
  return report->report->tables[1]->rows[row]->values[1];
}

Test(report_text, csv_leaves_a_distribution_empty_that_is_not_known) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();

  toy_type(report, 1)->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  FILE *out = begin();
  tk_csv_rows(out, report, tt_toy_schema()->tables[1], false);
  tt_toy_report_free();
  fclose(out);
  expect_piece("\r\nsmall,,,,,,,,,,,,false\r\n");
}

Test(report_text, one_table_of_a_report) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();

  cr_assert_not(tk_report_pick(report, "by_name"));
  cr_assert(tk_report_pick(report, "by_type"));
  cr_assert_eq(report->report->n_tables, 1);
  cr_assert_str_eq(report->report->schema->tables[0]->name, "by_type");
  cr_assert_eq(report->report->tables[0]->n_rows, 2);
  tt_toy_report_free();
}
