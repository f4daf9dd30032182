/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "pack/distribution.h"
#include "pack/merge.h"
#include "pack/report_read.h"
#include "proto/unpack.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Table Table;
typedef Tracecollect__V1__Row Row;

enum { PARTS_MAX = 4 };
enum { SERVED, QUEUED, HEAP, IDLE_SHARE, PAUSED, SEEN, OWNER, LOST };
enum { BY_STACK, BY_TYPE, QUEUED_NOW };

static struct tb_mem mem;
static struct tb_arena arena;
static StreamReport *part[PARTS_MAX], *sum;

static StreamReport *copy_of(const StreamReport *report) {
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);
  unsigned char *packed = malloc(tracecollect__v1__stream_report__get_packed_size(report));
  size_t bytes = tracecollect__v1__stream_report__pack(report, packed);
  StreamReport *copy = tracecollect__v1__stream_report__unpack(&allocator, bytes, packed);

  free(packed);
  return copy;
}

/* Each part is a toy report, of the instances a:1, b:1 and so on. */
static void open_parts(void) {
  static char names[PARTS_MAX][4] = { "a:1", "b:1", "c:1", "d:1" };
  StreamReport *toy = tt_toy_report();

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  for (size_t i = 0; i < PARTS_MAX; i++) {
    part[i] = copy_of(toy);
    part[i]->instance = names[i];
  }
  tt_toy_report_free();
}

static void close_parts(void) {
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(merge, .init = open_parts, .fini = close_parts);

static void merge(size_t parts) {
  cr_assert_eq(tp_merge(&arena, part, parts, &sum), TB_OK);
}

static const Value *figure(unsigned i) {
  return sum->report->figures[i];
}

static bool is_unknown(const Value *value) {
  return value->is_case == TRACECOLLECT__V1__VALUE__IS__NOT_SET;
}

static bool has_note(const char *piece) {
  for (size_t i = 0; i < sum->report->n_notes; i++)
    if (strstr(sum->report->notes[i], piece) != NULL) return true;
  return false;
}

static void set_buckets(Distribution *d, int scale, int32_t offset, uint64_t lengths, uint64_t ns) {
  d->scale = scale;
  d->offset = offset;
  d->n_buckets = 1;
  d->buckets[0] = d->count = lengths;
  d->total_ns = lengths * ns;
  d->min_ns = d->max_ns = ns;
  d->zeros = 0;
}

Test(merge, numbers_are_summed_and_what_differs_is_unknown) {
  part[1]->report->figures[OWNER]->text = part[1]->kind;
  part[1]->report->figures[LOST]->is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
  part[1]->report->figures[LOST]->number = 3;
  part[2]->report->options[0]->number++;
  merge(3);
  const Distribution *served = figure(SERVED)->distribution;
  cr_expect_eq(served->count, 39);
  cr_expect_eq(served->total_ns, 9000480);
  cr_expect_eq(served->lower_bounds, 6);
  cr_expect_eq(served->buckets[64], 30);
  cr_expect_eq(figure(QUEUED)->number, 3);
  cr_expect_eq(figure(HEAP)->number, 9 << 20);
  cr_expect(is_unknown(figure(IDLE_SHARE)), "nobody knows what it is a share of");
  cr_expect_eq(figure(PAUSED)->number, 1);
  cr_expect(is_unknown(figure(SEEN)), "without a wall clock there is no common time");
  cr_expect(is_unknown(figure(OWNER)));
  cr_expect_eq(figure(LOST)->number, 3);
  cr_expect(is_unknown(sum->report->options[0]));
}

Test(merge, it_says_of_how_many_instances_it_is) {
  part[0]->from_wall_ns = 0;
  part[0]->until_wall_ns = 40;
  part[1]->from_wall_ns = 30;
  part[1]->until_wall_ns = 50;
  part[2]->from_wall_ns = 20;
  part[2]->instance = part[1]->instance; /* it started again */
  part[0]->ended_wall_ns = part[1]->ended_wall_ns = 7;
  part[1]->broken_generations = 2;
  part[0]->thinned_events = 12345;
  part[2]->thinned_events = 3 * 12345 / 5;
  merge(3);
  cr_expect_eq(sum->instances, 2);
  cr_expect_str_eq(sum->service, "shop");
  cr_expect_str_eq(sum->instance, "");
  cr_expect_eq(sum->stream.len, 0);
  cr_expect_eq(sum->from_wall_ns, 20);
  cr_expect_eq(sum->until_wall_ns, 50);
  cr_expect_eq(sum->from_ns, 20);
  cr_expect_eq(sum->until_ns, 50);
  cr_expect_eq(sum->time_ns, 3000000000);
  cr_expect_eq(sum->events, 3 * 12345);
  cr_expect_eq(sum->broken_generations, 2);
  cr_expect_eq(sum->thinned_events, 12345 + 3 * 12345 / 5);
  cr_expect_float_eq(tp_report_analysed_share(sum), 7 / 15., 1e-4, "of all events");
  cr_expect_eq(sum->ended_wall_ns, 0, "one goes on");
  cr_expect_eq(sum->report->n_notes, 3, "each note once, and one on rows that are left out");
  part[2]->ended_wall_ns = 9;
  merge(3);
  cr_expect_eq(sum->ended_wall_ns, 9);
}

Test(merge, a_sum_is_in_a_c_programs_words_if_all_parts_are) {
  tp_report_set_program(part[0], TO_PROGRAM_C);
  merge(2);
  cr_assert_eq(tp_report_program(sum), TO_PROGRAM_GO);
  tp_report_set_program(part[1], TO_PROGRAM_C);
  merge(2);
  cr_assert_eq(tp_report_program(sum), TO_PROGRAM_C);
}

Test(merge, a_share_of_time_is_weighted_by_time) {
  for (size_t i = 0; i < 2; i++) part[i]->report->schema->figures[IDLE_SHARE]->of_time = true;
  part[1]->report->figures[IDLE_SHARE]->share = 0.5;
  part[1]->until_ns = part[1]->from_ns + 2000000000;
  merge(2);
  cr_expect_float_eq(figure(IDLE_SHARE)->share, (0.125 + 2 * 0.5) / 3, 1e-12);
  part[1]->report->figures[IDLE_SHARE]->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  merge(2);
  cr_expect(is_unknown(figure(IDLE_SHARE)));
}

Test(merge, times_are_on_the_wall_clock) {
  for (size_t i = 0; i < 2; i++) {
    part[i]->until_wall_ns = UINT64_C(1700000000000000000);
    part[i]->until_ns -= (int64_t)i * 1000; /* its clock began later */
    part[i]->report->figures[SEEN]->number = part[i]->until_ns - 70;
  }
  merge(2);
  cr_expect_eq(sum->until_ns, 1700000000000000000);
  cr_expect_eq(figure(SEEN)->number, 1700000000000000000 - 70);
  StreamReport *const both[] = { sum, sum };
  cr_assert_eq(tp_merge(&arena, both, 2, &sum), TB_OK);
  cr_expect_eq(figure(SEEN)->number, 1700000000000000000 - 70);
}

Test(merge, a_number_that_says_so_is_the_greatest) {
  for (size_t i = 0; i < 2; i++) part[i]->report->schema->figures[QUEUED]->greatest = true;
  part[1]->report->figures[QUEUED]->number = 5;
  merge(2);
  cr_expect_eq(figure(QUEUED)->number, 5);
}

Test(merge, rows_of_one_key_are_one_row) {
  Table *stacks = part[1]->report->tables[BY_STACK];
  Row *first = stacks->rows[0];

  stacks->rows[0] = stacks->rows[1]; /* in another order, and its code elsewhere */
  stacks->rows[1] = first;
  part[1]->report->frames[1]->pc += 4096;
  merge(2);
  const Table *joined = sum->report->tables[BY_STACK];
  cr_assert_eq(joined->n_rows, 3);
  cr_expect_eq(joined->rows[0]->values[1]->distribution->count, 6);
  cr_expect_eq(joined->rows[0]->values[3]->number, 8);
  cr_expect_eq(tp_stack_length(sum->report, joined->rows[0]->values[0]), 2);
  cr_expect_eq(joined->rows[1]->values[1]->distribution->total_ns, 140);
  cr_expect(joined->rows[2]->other);
  cr_expect_eq(joined->rows[2]->values[1]->distribution->min_ns, 5);
  cr_expect_eq(joined->rows[2]->values[3]->number, 10);
  cr_expect_eq(joined->rows_total, 2 + 5 + 5, "2 listed, of each part 5 more");
  cr_expect(has_note("lower bounds"));
  const Table *types = sum->report->tables[BY_TYPE];
  cr_expect_str_eq(types->rows[1]->values[0]->text, "small");
  cr_expect_eq(types->rows[1]->values[1]->distribution->p99_ns, 9);
  cr_expect(is_unknown(types->rows[0]->values[2]), "a share");
}

Test(merge, another_line_is_another_stack) {
  part[1]->report->frames[1]->line++;
  merge(2);
  cr_expect_eq(sum->report->tables[BY_STACK]->n_rows, 4);
}

Test(merge, things_of_a_list_stay_with_their_instance) {
  static int32_t oldest_first[] = { 2 };

  for (size_t i = 0; i < 2; i++) {
    part[i]->report->schema->tables[QUEUED_NOW]->n_sort = 1;
    part[i]->report->schema->tables[QUEUED_NOW]->sort = oldest_first;
  }
  part[1]->report->tables[QUEUED_NOW]->rows[0]->values[1]->number = 1234568;
  merge(2);
  const Table *queue = sum->report->tables[QUEUED_NOW];
  const Tracecollect__V1__TableSchema *schema = sum->report->schema->tables[QUEUED_NOW];
  cr_assert_eq(queue->n_rows, 2);
  cr_expect_eq(queue->rows_total, 2);
  cr_assert_str_eq(schema->columns[4]->name, "instance");
  cr_expect_str_eq(queue->rows[0]->values[4]->text, "b:1");
  cr_expect_str_eq(queue->rows[1]->values[4]->text, "a:1");
  cr_expect_eq(queue->rows[1]->values[0]->number, 17);
}

Test(merge, rows_are_sorted_again) {
  static int32_t fewest_first[] = { -4 };

  for (size_t i = 0; i < 2; i++) {
    part[i]->report->schema->tables[BY_STACK]->n_sort = 1;
    part[i]->report->schema->tables[BY_STACK]->sort = fewest_first;
  }
  merge(2);
  const Table *stacks = sum->report->tables[BY_STACK];
  cr_expect_eq(stacks->rows[0]->values[3]->number, 0);
  cr_expect_eq(stacks->rows[1]->values[3]->number, 8);
  cr_expect(stacks->rows[2]->other);
}

/* Index 0 of scale 2 ends at 1.19 s, and has 16 buckets of scale 6. */
Test(merge, a_finer_histogram_is_added_at_the_coarser_scale) {
  set_buckets(part[0]->report->figures[SERVED]->distribution, 6, 3, 10, 1040000000);
  set_buckets(part[1]->report->figures[SERVED]->distribution, 2, 0, 90, 1100000000);
  merge(2);
  const Distribution *served = figure(SERVED)->distribution;
  cr_expect_eq(served->scale, 2);
  cr_assert_eq(served->n_buckets, 1);
  cr_expect_eq(served->offset, 0);
  cr_expect_eq(served->buckets[0], 100);
  cr_expect_float_eq(tp_distribution_error(served), 0.0865, 1e-9);
  cr_expect_eq(served->min_ns, 1040000000);
  cr_expect_eq(served->max_ns, 1100000000);
}

Test(merge, without_buckets_there_are_no_quantiles_and_a_note_says_so) {
  part[1]->report->figures[SERVED]->distribution->n_buckets = 0;
  merge(3);
  const Distribution *served = figure(SERVED)->distribution;
  cr_expect(served->no_quantiles);
  cr_expect_eq(served->p99_ns, 0);
  cr_expect_eq(served->n_buckets, 0);
  cr_expect_eq(served->count, 39);
  cr_expect_eq(served->max_ns, 2000000);
  cr_expect(has_note("1 of 3 reports are of a version without histograms"));
}

Test(merge, of_several_versions_it_has_what_all_have) {
  Tracecollect__V1__ReportSchema *schema = part[1]->report->schema;

  schema->tables[BY_STACK]->n_columns--; /* without retries */
  schema->tables[BY_TYPE]->keys = 2;
  schema->n_figures--;
  merge(3);
  cr_expect_eq(sum->report->n_figures, LOST);
  cr_assert_eq(sum->report->n_tables, 2, "rows by other keys cannot be joined");
  cr_expect_eq(sum->report->schema->tables[0]->n_columns, 3);
  cr_expect_str_eq(sum->report->schema->tables[1]->name, "queued_now");
  cr_expect_eq(sum->report->tables[0]->rows[0]->values[1]->distribution->count, 9);
  cr_expect(has_note("several versions"));
}

Test(merge, a_sum_can_be_added_to_more) {
  merge(2);
  StreamReport *const both[] = { sum, part[2] };
  merge(3);
  StreamReport *at_once = sum;
  cr_assert_eq(tp_merge(&arena, both, 2, &sum), TB_OK);
  cr_expect_eq(sum->instances, 3);
  cr_expect_eq(sum->time_ns, at_once->time_ns);
  cr_expect_str_eq(sum->report->tables[QUEUED_NOW]->rows[1]->values[4]->text, "b:1");
  cr_expect_str_eq(sum->report->tables[QUEUED_NOW]->rows[2]->values[4]->text, "c:1");
  sum->report->schema = at_once->report->schema;
  unsigned char *a = malloc(tracecollect__v1__stream_report__get_packed_size(sum));
  unsigned char *b = malloc(tracecollect__v1__stream_report__get_packed_size(at_once));
  size_t bytes = tracecollect__v1__stream_report__pack(sum, a);
  cr_assert_eq(tracecollect__v1__stream_report__pack(at_once, b), bytes);
  cr_expect_eq(memcmp(a, b, bytes), 0);
  free(a);
  free(b);
}

/* Gives the table so many rows, each of a key of its own, with its number as the age. */
static void fill_queue(StreamReport *report, size_t rows, int64_t first, bool is_list) {
  Table *queue = report->report->tables[QUEUED_NOW];
  Row *pattern = queue->rows[0];

  report->report->schema->tables[QUEUED_NOW]->list = is_list;
  cr_assert_eq(tb_arena_alloc(&arena, rows * sizeof(*queue->rows), &queue->rows), TB_OK);
  queue->n_rows = queue->rows_total = rows;
  for (size_t i = 0; i < rows; i++) {
    Value *values;
    cr_assert_eq(tb_arena_alloc(&arena, pattern->n_values * sizeof(*values), &values), TB_OK);
    cr_assert_eq(tb_arena_copy(&arena, pattern, sizeof(*pattern), &queue->rows[i]), TB_OK);
    cr_assert_eq(
        tb_arena_alloc(&arena, pattern->n_values * sizeof(Value *), &queue->rows[i]->values),
        TB_OK);
    for (size_t c = 0; c < pattern->n_values; c++) {
      values[c] = *pattern->values[c];
      queue->rows[i]->values[c] = &values[c];
    }
    values[0].number = values[1].number = first + (int64_t)i;
  }
}

Test(merge, rows_above_the_limit_are_summed_in_other) {
  static int32_t most_first[] = { 2 };
  enum { ROWS = 3000 };

  for (size_t i = 0; i < 2; i++) {
    fill_queue(part[i], ROWS, 1 + (int64_t)i * ROWS, false);
    part[i]->report->schema->tables[QUEUED_NOW]->n_sort = 1;
    part[i]->report->schema->tables[QUEUED_NOW]->sort = most_first;
  }
  merge(2);
  const Table *queue = sum->report->tables[QUEUED_NOW];
  int64_t rest = 2 * ROWS - TP_MERGE_ROWS;
  cr_assert_eq(queue->n_rows, TP_MERGE_ROWS + 1);
  cr_expect_eq(queue->rows_total, 2 * ROWS);
  cr_expect_eq(queue->rows[0]->values[1]->number, 2 * ROWS);
  cr_expect_eq(queue->rows[TP_MERGE_ROWS - 1]->values[1]->number, rest + 1);
  cr_expect(queue->rows[TP_MERGE_ROWS]->other);
  cr_expect_eq(queue->rows[TP_MERGE_ROWS]->values[1]->number, rest * (rest + 1) / 2);
  cr_expect(is_unknown(queue->rows[TP_MERGE_ROWS]->values[0]));
}

Test(merge, things_above_the_limit_are_counted) {
  for (size_t i = 0; i < 2; i++) fill_queue(part[i], 3000, 1, true);
  merge(2);
  cr_expect_eq(sum->report->tables[QUEUED_NOW]->n_rows, TP_MERGE_ROWS);
  cr_expect_eq(sum->report->tables[QUEUED_NOW]->rows_total, 6000);
}

Test(merge, what_is_no_report_of_the_kind_is_refused) {
  Distribution *served = part[1]->report->figures[SERVED]->distribution;
  char *kind = part[1]->kind;

  cr_expect_eq(tp_merge(&arena, part, 0, &sum), TB_CORRUPT);
  served->offset = INT32_MAX;
  cr_expect_eq(tp_merge(&arena, part, 2, &sum), TB_CORRUPT);
  served->offset = 0;
  part[1]->kind = part[1]->window;
  cr_expect_eq(tp_merge(&arena, part, 2, &sum), TB_CORRUPT);
  part[1]->kind = kind;
  part[1]->report->schema = NULL;
  cr_expect_eq(tp_merge(&arena, part, 2, &sum), TB_CORRUPT);
}

/* Indexes outside their lists, and sums beyond the largest number. */
Test(merge, impossible_numbers_are_taken_as_they_are) {
  part[1]->report->n_stacks = 0;
  part[1]->report->figures[QUEUED]->number = INT64_MAX;
  part[1]->report->n_figures = QUEUED + 1;
  part[1]->report->tables[BY_STACK]->rows_total = 0;
  part[1]->report->schema->tables[BY_STACK]->keys = 99;
  merge(2);
  cr_expect_eq(figure(QUEUED)->number, INT64_MAX);
  cr_expect_eq(sum->report->n_tables, 2);
}

Test(merge, every_failed_allocation_gives_back_what_it_took) {
  tb_rc rc = TB_BUDGET;

  for (size_t budget = 16; rc != TB_OK; budget += 512) {
    struct tb_mem small;
    struct tb_arena its;
    tb_mem_init(&small, tb_mem_libc, NULL, budget);
    tb_arena_init(&its, &small, 512);
    rc = tp_merge(&its, part, PARTS_MAX, &sum);
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
    tb_arena_fini(&its);
    cr_assert_eq(small.bytes, 0);
  }
}
