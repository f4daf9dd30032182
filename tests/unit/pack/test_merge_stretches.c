/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of consecutive stretches of one stream, added up by the rules of their schema. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "pack/merge.h"
#include "pack/sum.h"
#include "proto/unpack.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Table Table;
typedef Tracecollect__V1__OverTime OverTime;

#define RULE(name) TRACECOLLECT__V1__OVER_TIME__OVER_TIME_##name
#define SECOND     INT64_C(1000000000)

enum { PARTS = 3 };
enum { SERVED, QUEUED, HEAP, IDLE_SHARE, PAUSED, SEEN };
enum { BY_STACK, BY_TYPE, QUEUED_NOW };

static struct tb_mem mem;
static struct tb_arena arena;
static StreamReport *part[PARTS], *sum;

static StreamReport *copy_of(const StreamReport *report) {
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);
  unsigned char *packed = malloc(tracecollect__v1__stream_report__get_packed_size(report));
  size_t bytes = tracecollect__v1__stream_report__pack(report, packed);
  StreamReport *copy = tracecollect__v1__stream_report__unpack(&allocator, bytes, packed);

  free(packed);
  return copy;
}

/* The stretches are of 1, 2 and 3 s. */
static void open_parts(void) {
  static unsigned char id[16] = { 1, 2, 3 };
  StreamReport *toy = tt_toy_report();
  int64_t now = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  for (size_t i = 0; i < PARTS; i++) {
    part[i] = copy_of(toy);
    part[i]->stream = (ProtobufCBinaryData){ sizeof id, id };
    part[i]->first_gen = 1 + 10 * i;
    part[i]->last_gen = 10 + 10 * i;
    part[i]->from_ns = now;
    now += (int64_t)(i + 1) * SECOND;
    part[i]->until_ns = now;
    part[i]->from_wall_ns = (uint64_t)part[i]->from_ns + 1000;
    part[i]->until_wall_ns = (uint64_t)now + 1000;
    part[i]->report->figures[QUEUED]->number = 5 - (int64_t)i;
  }
  tt_toy_report_free();
}

static void close_parts(void) {
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(merge_stretches, .init = open_parts, .fini = close_parts);

static void merge(void) {
  cr_assert_eq(tp_merge_stretches(&arena, part, PARTS, &sum), TB_OK);
}

static const Value *figure(unsigned i) {
  return sum->report->figures[i];
}

static bool is_unknown(const Value *value) {
  return value->is_case == TRACECOLLECT__V1__VALUE__IS__NOT_SET;
}

static void set_rule(OverTime rule) {
  for (size_t i = 0; i < PARTS; i++) part[i]->report->schema->figures[QUEUED]->over_time = rule;
}

static void set_column_rule(unsigned table, unsigned column, OverTime rule) {
  for (size_t i = 0; i < PARTS; i++)
    part[i]->report->schema->tables[table]->columns[column]->over_time = rule;
}

Test(merge_stretches, it_is_of_the_same_stream_from_the_first_begin_to_the_last_end) {
  part[0]->ended_wall_ns = 7;
  part[2]->ended_wall_ns = 9;
  part[2]->broken_generations = 4;
  merge();
  cr_expect_eq(sum->instances, 0);
  cr_expect_str_eq(sum->instance, "a:1");
  cr_assert_eq(sum->stream.len, 16);
  cr_expect_eq(memcmp(sum->stream.data, part[0]->stream.data, 16), 0);
  cr_expect_eq(sum->from_ns, 0);
  cr_expect_eq(sum->until_ns, 6 * SECOND);
  cr_expect_eq(sum->from_wall_ns, 1000);
  cr_expect_eq(sum->until_wall_ns, 6 * SECOND + 1000);
  cr_expect_eq(sum->time_ns, 6 * SECOND);
  cr_expect_eq(sum->first_gen, 1);
  cr_expect_eq(sum->last_gen, 30);
  cr_expect_eq(sum->events, 3 * 12345);
  cr_expect_eq(sum->broken_generations, 4, "since the stream began");
  cr_expect_eq(sum->ended_wall_ns, 9);
  cr_expect_eq(figure(SERVED)->distribution->count, 39);
  cr_expect_eq(figure(SEEN)->number, -5, "its clock is the stream's");
}

Test(merge_stretches, numbers_follow_the_rule_of_their_schema) {
  merge();
  cr_expect_eq(figure(QUEUED)->number, 12);
  set_rule(RULE(LAST));
  merge();
  cr_expect_eq(figure(QUEUED)->number, 3);
  set_rule(RULE(GREATEST));
  merge();
  cr_expect_eq(figure(QUEUED)->number, 5);
  set_rule(RULE(LEAST));
  merge();
  cr_expect_eq(figure(QUEUED)->number, 3);
  set_rule(RULE(MEAN));
  merge();
  cr_expect_eq(figure(QUEUED)->number, 4, "(5 * 1 + 4 * 2 + 3 * 3) / 6 = 3.67");
  set_rule(RULE(UNKNOWN));
  merge();
  cr_expect(is_unknown(figure(QUEUED)));
  set_rule((OverTime)99);
  merge(); /* of a later version */
}

Test(merge_stretches, a_number_of_now_that_the_last_one_lacks_is_unknown) {
  set_rule(RULE(LAST));
  part[2]->report->figures[QUEUED]->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  merge();
  cr_expect(is_unknown(figure(QUEUED)));
}

Test(merge_stretches, a_row_that_the_last_one_lacks_has_no_number_of_now) {
  set_column_rule(BY_STACK, 3, RULE(LAST));
  part[2]->report->tables[BY_STACK]->rows[0] = part[2]->report->tables[BY_STACK]->rows[2];
  part[2]->report->tables[BY_STACK]->n_rows = 1;
  merge();
  const Table *stacks = sum->report->tables[BY_STACK];
  cr_assert_eq(stacks->n_rows, 3);
  for (size_t i = 0; i < 2; i++) cr_expect(is_unknown(stacks->rows[i]->values[3]));
  cr_expect(stacks->rows[2]->other);
  cr_expect_eq(stacks->rows[2]->values[3]->number, 5);
}

Test(merge_stretches, a_mean_of_a_row_counts_stretches_without_it) {
  set_column_rule(BY_STACK, 3, RULE(MEAN));
  part[2]->report->tables[BY_STACK]->n_rows = 0;
  part[0]->report->tables[BY_STACK]->rows[0]->values[3]->number = 60;
  part[1]->report->tables[BY_STACK]->rows[0]->values[3]->number = 30;
  merge();
  cr_expect_eq(sum->report->tables[BY_STACK]->rows[0]->values[3]->number, 20,
               "(60 * 1 + 30 * 2 + 0 * 3) / 6");
}

Test(merge_stretches, lists_of_now_are_those_of_the_last_one) {
  for (size_t i = 0; i < PARTS; i++) {
    part[i]->report->schema->tables[QUEUED_NOW]->now = true;
    part[i]->report->tables[QUEUED_NOW]->rows[0]->values[0]->number = (int64_t)i;
  }
  merge();
  const Table *queue = sum->report->tables[QUEUED_NOW];
  cr_assert_eq(queue->n_rows, 1);
  cr_expect_eq(queue->rows[0]->values[0]->number, 2);
  cr_expect_eq(sum->report->schema->tables[QUEUED_NOW]->n_columns, 4, "all of one instance");
}

Test(merge_stretches, a_thing_that_goes_on_is_one_row) {
  part[1]->report->tables[QUEUED_NOW]->rows[0]->values[1]->number = 70;
  part[2]->report->tables[QUEUED_NOW]->rows[0]->values[0]->number = 18;
  merge();
  cr_assert_eq(sum->report->tables[QUEUED_NOW]->n_rows, 2);
  cr_expect_eq(sum->report->tables[QUEUED_NOW]->rows[0]->values[1]->number, 70, "as it is now");
  set_column_rule(QUEUED_NOW, 1, RULE(GREATEST));
  merge();
  cr_expect_eq(sum->report->tables[QUEUED_NOW]->rows[0]->values[1]->number, 1234567);
}

static void expect_same(StreamReport *a, StreamReport *b) {
  size_t bytes = tracecollect__v1__stream_report__get_packed_size(a);
  unsigned char *x = malloc(bytes), *y = malloc(bytes);

  cr_assert_eq(tracecollect__v1__stream_report__get_packed_size(b), bytes);
  tracecollect__v1__stream_report__pack(a, x);
  tracecollect__v1__stream_report__pack(b, y);
  cr_expect_eq(memcmp(x, y, bytes), 0);
  free(x);
  free(y);
}

Test(merge_stretches, a_sum_can_be_continued) {
  set_rule(RULE(MEAN));
  part[1]->report->figures[QUEUED]->number = 8;
  part[2]->report->figures[QUEUED]->number = 11;
  set_column_rule(BY_STACK, 3, RULE(LAST));
  merge();
  StreamReport *at_once = sum, *more[] = { NULL, part[2] };
  cr_assert_eq(tp_merge_stretches(&arena, part, 2, &more[0]), TB_OK);
  cr_assert_eq(tp_merge_stretches(&arena, more, 2, &sum), TB_OK);
  expect_same(at_once, sum);
}

/* A node that ended no longer has goroutines. */
Test(merge_stretches, what_has_ended_has_no_numbers_of_now_beside_what_lives) {
  set_rule(RULE(LAST));
  for (size_t i = 0; i < PARTS; i++) part[i]->report->schema->tables[QUEUED_NOW]->now = true;
  part[0]->ended_wall_ns = 7;
  cr_assert_eq(tp_merge(&arena, part, PARTS, &sum), TB_OK);
  cr_expect_eq(figure(QUEUED)->number, 4 + 3);
  cr_expect_eq(figure(SERVED)->distribution->count, 39);
  cr_expect_eq(sum->report->tables[QUEUED_NOW]->n_rows, 2);
  part[1]->ended_wall_ns = part[2]->ended_wall_ns = 9;
  cr_assert_eq(tp_merge(&arena, part, PARTS, &sum), TB_OK);
  cr_expect_eq(figure(QUEUED)->number, 5 + 4 + 3, "as they ended");
}

Test(merge_stretches, histograms_and_columns_of_another_width_are_joined) {
  Tracecollect__V1__Distribution *served = part[1]->report->figures[SERVED]->distribution;

  served->scale = 2;
  served->offset >>= 4;
  served->n_buckets = served->n_buckets / 16 + 1;
  memset(served->buckets, 0, served->n_buckets * sizeof *served->buckets);
  served->buckets[0] = 13;
  part[2]->report->schema->tables[BY_STACK]->n_columns--; /* without retries */
  merge();
  cr_expect_eq(figure(SERVED)->distribution->scale, 2);
  cr_expect_eq(figure(SERVED)->distribution->count, 39);
  cr_expect_eq(sum->report->schema->tables[BY_STACK]->n_columns, 3);
}
