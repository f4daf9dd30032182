/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of the reports of several streams is the report of one stream that has all of their events. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/window/histogram.h"
#include "pack/distribution.h"
#include "pack/merge.h"
#include "pack/report.h"
#include "pack/report_read.h"
#include "proto/unpack.h"
#include "unit/online/analysis/fake_generation.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Row Row;
typedef struct tp_table Table;

enum { PARTS = 3, CALLS = 3000, STACKS = 4 };

/* The stacks have other ids and program counters in each stream, as in another process. */
#define STACK(pc, line)                                                                            \
  {                                                                                                \
    { 100 + (pc), (line), "read", "io.c" }, {                                                      \
      200 + (pc), 9, "main", "main.c"                                                              \
    }                                                                                              \
  }
static const struct to_generation gen[PARTS] = {
  { .number = 1, .stack = { [1] = STACK(0, 1), STACK(1, 2), STACK(2, 3), STACK(3, 4) } },
  { .number = 1, .stack = { [1] = STACK(7, 1), STACK(6, 2), STACK(5, 3), STACK(4, 4) } },
  { .number = 1, .stack = { [1] = STACK(9, 1), STACK(1, 2), STACK(0, 3), STACK(3, 4) } },
};

static uint64_t next_number(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static void begin_stream(struct tt_analyses *t, int64_t thread) {
  TT_FEED(t, &gen[0], .time = 1, .m = thread, .p = thread, .g = TO_NONE, .slot = (uint32_t)thread,
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)thread, (uint64_t)thread, TW_GO_RUNNING });
}

static void feed_call(struct tt_analyses *t, const struct to_generation *its, int64_t thread,
                      to_ns begin, to_ns end, uint64_t stack, bool is_blocked) {
  TT_FEED(t, its, .time = begin, .m = thread, .p = thread, .g = thread,
          .type = TW_EV_GO_SYSCALL_BEGIN, .args = { 1, stack });
  TT_FEED(t, its, .time = end, .m = thread, .p = is_blocked ? TO_NONE : thread, .g = thread,
          .type = is_blocked ? TW_EV_GO_SYSCALL_END_BLOCKED : TW_EV_GO_SYSCALL_END);
}

/* Feeds calls of 1 ns to 2^most ns to one of the parts and to the whole. */
static void feed_calls(struct tt_analyses *part, struct tt_analyses *whole, unsigned most) {
  uint64_t state = most;
  to_ns now = 2;

  for (int64_t p = 0; p < PARTS; p++) {
    begin_stream(&part[p], p + 1);
    begin_stream(whole, p + 1);
  }
  for (unsigned i = 0; i < CALLS; i++) {
    unsigned p = (unsigned)next_number(&state) % PARTS;
    uint64_t stack = 1 + next_number(&state) % STACKS, bits = next_number(&state) % most;
    to_ns end = now + (to_ns)((UINT64_C(1) << bits) + next_number(&state) % (UINT64_C(1) << bits));
    bool is_blocked = next_number(&state) % 4 == 0;
    feed_call(&part[p], &gen[p], p + 1, now, end, stack, is_blocked);
    feed_call(whole, &gen[0], p + 1, now, end, stack, is_blocked);
    now = end + 1;
  }
}

static StreamReport *report_in(struct tb_arena *arena, struct tt_analyses *t,
                               enum to_window window) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  const struct tp_report_about about = { .service = "shop", .instance = "one" };
  struct tb_buf packed;

  tb_buf_init(&packed, arena->mem);
  cr_assert_eq(tp_report_pack(t->a, TO_ANALYSIS_SYSCALL, window, SIZE_MAX, &about, &packed), TB_OK);
  StreamReport *report =
      tracecollect__v1__stream_report__unpack(&allocator, packed.len, packed.data);
  tb_buf_fini(&packed);
  return report;
}

static StreamReport *report_of(struct tb_arena *arena, struct tt_analyses *t) {
  return report_in(arena, t, TO_WINDOW_ALL);
}

/* ---- what is compared ---- */

/* Returns the number of lengths in bucket `at` of a lower scale. */
static uint64_t bucket_at(const Distribution *d, int32_t at, int scale) {
  uint64_t n = 0;

  cr_assert_geq(d->scale, scale);
  for (size_t i = 0; i < d->n_buckets; i++)
    if ((d->offset + (int32_t)i) >> (d->scale - scale) == at) n += d->buckets[i];
  return n;
}

static void expect_near(uint64_t ns, uint64_t exact, double error) {
  double most = (double)exact * error * 2 + 1;
  cr_expect_float_eq((double)ns, (double)exact, most, "%lu is not near %lu", ns, exact);
}

/* The sum's scale may be finer, but not coarser, than that of one stream, whose rows have fewer buckets. */
static void expect_same(const char *name, const Distribution *sum, const Distribution *whole) {
  cr_assert_not_null(sum);
  cr_expect_eq(sum->count, whole->count, "%s %lu %lu", name, sum->count, whole->count);
  cr_expect_eq(sum->total_ns, whole->total_ns, "%s", name);
  cr_expect_eq(sum->min_ns, whole->min_ns, "%s", name);
  cr_expect_eq(sum->max_ns, whole->max_ns, "%s", name);
  cr_expect_not(sum->no_quantiles);
  for (int32_t i = 0; i < (int32_t)whole->n_buckets; i++)
    cr_assert_eq(bucket_at(sum, whole->offset + i, whole->scale), whole->buckets[i],
                 "%s: bucket %d", name, i);
  double error = tp_distribution_error(whole);
  expect_near(sum->p50_ns, whole->p50_ns, error);
  expect_near(sum->p90_ns, whole->p90_ns, error);
  expect_near(sum->p99_ns, whole->p99_ns, error);
  expect_near(sum->p999_ns, whole->p999_ns, error);
}

static const Row *row_of_line(const Table *table, uint64_t line) {
  size_t column = tp_table_column(table, "stack");

  for (size_t i = 0; i < table->table->n_rows; i++) {
    const Tracecollect__V1__Value *stack = tp_row_value(table->table->rows[i], column);
    const Tracecollect__V1__Frame *frame = tp_stack_frame(table->report, stack, 0);
    if (frame != NULL && frame->line == line) return table->table->rows[i];
  }
  return NULL;
}

static void expect_same_rows(const Table *sum, const Table *whole) {
  static const char *const names[] = { "calls", "blocked" };

  cr_assert_eq(whole->table->n_rows, STACKS);
  cr_assert_eq(sum->table->n_rows, STACKS);
  cr_assert_eq(sum->table->rows_total, whole->table->rows_total);
  for (uint64_t line = 1; line <= STACKS; line++) {
    const Row *a = row_of_line(sum, line), *b = row_of_line(whole, line);
    cr_assert(a != NULL && b != NULL, "no row of line %lu", line);
    for (size_t i = 0; i < 2; i++)
      expect_same(names[i], tp_row_distribution(a, tp_table_column(sum, names[i])),
                  tp_row_distribution(b, tp_table_column(whole, names[i])));
  }
}

static void expect_same_order(const Table *sum, const Table *whole) {
  size_t column = tp_table_column(sum, "stack");

  for (size_t i = 0; i < whole->table->n_rows; i++)
    cr_expect_eq(
        tp_stack_frame(sum->report, tp_row_value(sum->table->rows[i], column), 0)->line,
        tp_stack_frame(whole->report, tp_row_value(whole->table->rows[i], column), 0)->line);
}

static void expect_union(unsigned most) {
  struct tt_analyses part[PARTS], whole;
  struct tb_mem mem;
  struct tb_arena arena;
  StreamReport *reports[PARTS], *sum, *one;
  Table rows, rows_of_one;
  int64_t open = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  tt_analyses_open(&whole, 10000000, 100);
  for (size_t p = 0; p < PARTS; p++) tt_analyses_open(&part[p], 10000000, 100);
  feed_calls(part, &whole, most);
  for (size_t p = 0; p < PARTS; p++) {
    reports[p] = report_of(&arena, &part[p]);
    open += tp_value_number(tp_report_figure(reports[p]->report, "open"));
  }
  one = report_of(&arena, &whole);
  cr_assert_eq(tp_merge(&arena, reports, PARTS, &sum), TB_OK);
  cr_expect_eq(sum->events, one->events);
  cr_expect_eq(tp_value_number(tp_report_figure(sum->report, "open")), open);
  cr_expect_eq(tp_value_number(tp_report_option(sum->report, "blocked_after_ns")), 10000000);
  expect_same("calls", tp_value_distribution(tp_report_figure(sum->report, "calls")),
              tp_value_distribution(tp_report_figure(one->report, "calls")));
  expect_same("blocked", tp_value_distribution(tp_report_figure(sum->report, "blocked")),
              tp_value_distribution(tp_report_figure(one->report, "blocked")));
  cr_assert(tp_report_table(sum->report, "by_stack", &rows));
  cr_assert(tp_report_table(one->report, "by_stack", &rows_of_one));
  expect_same_rows(&rows, &rows_of_one);
  expect_same_order(&rows, &rows_of_one);
  for (size_t p = 0; p < PARTS; p++) tt_analyses_close(&part[p]);
  tt_analyses_close(&whole);
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

Test(merge_union, short_lengths_of_one_scale) {
  expect_union(2);
}

Test(merge_union, lengths_of_many_octaves_lower_the_scale_of_rows) {
  expect_union(30);
}

/* ---- over time ---- */

/* Returns the sum of some hundred stretches, which are a few calls up to some minutes long. */
static StreamReport *sum_of_stretches(struct tb_arena *arena, struct tt_analyses *t) {
  StreamReport *stretch[CALLS], *sum;
  uint64_t state = 11;
  size_t stretches = 0;
  to_ns now = 2;

  begin_stream(t, 1);
  for (unsigned i = 0; i < CALLS; i++) {
    uint64_t stack = 1 + next_number(&state) % STACKS, bits = next_number(&state) % 28;
    to_ns end = now + (to_ns)((UINT64_C(1) << bits) + next_number(&state) % (UINT64_C(1) << bits));
    feed_call(t, &gen[0], 1, now, end, stack, next_number(&state) % 4 == 0);
    now = end + 1 + (next_number(&state) % 100 == 0 ? INT64_C(200000000000) : 0);
    if (next_number(&state) % 20 != 0) continue;
    stretch[stretches++] = report_in(arena, t, TO_WINDOW_STRETCH);
    cr_assert_eq(to_analyses_mark(t->a), TB_OK);
  }
  stretch[stretches++] = report_in(arena, t, TO_WINDOW_STRETCH);
  cr_assert_gt(stretches, 100);
  cr_assert_eq(tp_merge_stretches(arena, stretch, stretches, &sum), TB_OK);
  return sum;
}

Test(merge_union, stretches_of_time_are_the_whole_time) {
  struct tt_analyses t;
  struct tb_mem mem;
  struct tb_arena arena;
  Table rows, rows_of_all;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  tt_analyses_open(&t, 10000000, 100);
  StreamReport *sum = sum_of_stretches(&arena, &t), *all = report_of(&arena, &t);
  cr_expect_eq(sum->events, all->events);
  cr_expect_eq(sum->from_ns, all->from_ns);
  cr_expect_eq(sum->until_ns, all->until_ns);
  cr_expect_eq(tp_value_number(tp_report_figure(sum->report, "open")),
               tp_value_number(tp_report_figure(all->report, "open")));
  expect_same("calls", tp_value_distribution(tp_report_figure(sum->report, "calls")),
              tp_value_distribution(tp_report_figure(all->report, "calls")));
  cr_assert(tp_report_table(sum->report, "by_stack", &rows));
  cr_assert(tp_report_table(all->report, "by_stack", &rows_of_all));
  expect_same_rows(&rows, &rows_of_all);
  expect_same_order(&rows, &rows_of_all);
  tt_analyses_close(&t);
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}
