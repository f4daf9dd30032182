/* SPDX-License-Identifier: Apache-2.0 */
/* Real traces, read with all generations counted, with every second one thinned, with the others thinned, and with all thinned. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "online/analysis/analysis.h"
#include "online/trace/reader.h"
#include "support/seeds.h"
#include "support/stored.h"

enum { FIGURES_MAX = 4096 };
enum way { WHOLE, ODD, EVEN, NONE, WAYS };

/* Numbers of one reading, in a fixed order. */
struct numbers {
  uint64_t n, of[FIGURES_MAX];
  bool thins[FIGURES_MAX]; /* may lack what ended in a thinned generation */
};

struct reading {
  enum way way;
  struct tb_mem mem;
  struct to_analyses *a;
  uint64_t generations;
  struct numbers numbers;
  uint64_t watched[4];
  uint64_t events, thinned;
};

static void choose(struct reading *r) {
  bool is_odd = (r->generations & 1) != 0;

  to_analyses_thin(r->a,
                   r->way == NONE || (r->way == ODD && is_odd) || (r->way == EVEN && !is_odd));
  r->generations++;
}

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct reading *r = self;

  return to_analyses_events(r->a, gen, events, n);
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  struct reading *r = self;

  cr_assert_eq(to_analyses_generation_ends(r->a, gen), TB_OK);
  choose(r);
  return TB_OK;
}

static void note_watched(void *self, const struct to_watched *span) {
  struct reading *r = self;

  r->watched[span->what]++;
}

static void add_number(struct numbers *numbers, uint64_t number, bool thins) {
  cr_assert_lt(numbers->n, FIGURES_MAX);
  numbers->of[numbers->n] = number;
  numbers->thins[numbers->n++] = thins;
}

static void add_distribution(struct numbers *numbers, const struct to_value *value, bool thins) {
  add_number(numbers, value->none ? 0 : value->distribution->sum.count, thins);
  add_number(numbers, value->none ? 0 : value->distribution->sum.total_ns, thins);
}

/* Columns are added up, as the order of rows and rows without counts may differ. */
static void add_column(struct numbers *numbers, const struct to_table_schema *schema,
                       const struct to_table *table, unsigned column, bool thins) {
  uint64_t count = 0, total_ns = 0;

  for (size_t i = 0; i < table->rows; i++) {
    const struct to_value *value = &to_table_row(schema, table, i)[column];
    if (value->none) continue;
    count += value->distribution->sum.count;
    total_ns += value->distribution->sum.total_ns;
  }
  add_number(numbers, count, thins);
  add_number(numbers, total_ns, thins);
}

static void add_report(struct reading *r, enum to_analysis_kind kind) {
  static const char *const thin[] = { "sched",   "block",      "sync",       "net",
                                      "syscall", "goroutines", "contention", "wake" };
  struct numbers *numbers = &r->numbers;
  const struct to_report *report;
  bool thins = false;

  cr_assert_eq(to_analyses_report(r->a, kind, TO_WINDOW_ALL, SIZE_MAX, &report), TB_OK);
  for (size_t i = 0; i < sizeof thin / sizeof *thin; i++)
    thins = thins || strcmp(thin[i], to_analysis_name(kind)) == 0;
  const struct to_schema *schema = report->schema;
  for (unsigned i = 0; i < schema->figures; i++)
    if (schema->figure[i].type == TO_VALUE_DISTRIBUTION)
      add_distribution(numbers, &report->figure[i], thins);
    else if (!thins && schema->figure[i].type != TO_VALUE_SHARE && !report->figure[i].none)
      add_number(numbers, (uint64_t)report->figure[i].number, false);
  for (unsigned t = 0; t < schema->tables; t++) {
    if (!thins) add_number(numbers, report->table[t].rows_total, false);
    for (unsigned c = 0; c < schema->table[t].columns; c++)
      if (schema->table[t].column[c].type == TO_VALUE_DISTRIBUTION)
        add_column(numbers, &schema->table[t], &report->table[t], c, thins);
  }
  if (kind == TO_ANALYSIS_SCHED) {
    r->events = report->events;
    r->thinned = report->thinned_events;
  }
  if (!thins) cr_assert_eq(report->thinned_events, 0);
}

static void read_trace(const struct tt_stored *trace, enum way way, struct reading *r) {
  struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                       .stacks_max = TO_STACKS_MAX_DEFAULT };
  const struct to_watch watch = { .self = r, .span = note_watched, .syscall_ns = 1000000 };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  *r = (struct reading){ .way = way };
  tb_mem_init(&r->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_analyses_new(&r->mem, &config, &r->a), TB_OK);
  to_analyses_watch(r->a, &watch);
  choose(r);
  cr_assert_eq(to_reader_new(&mem, &(struct to_limits){ 0 }, TO_READER_PAST_ANNOTATIONS,
                             (struct to_event_sink){ r, take_events }, &diag, &reader),
               TB_OK);
  to_reader_on_end(reader, r, end_generation);
  cr_assert_eq(to_reader_read(reader, trace->bytes, trace->len), TB_OK, "%s: %s", trace->path,
               diag.text);
  to_reader_free(reader);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) add_report(r, (enum to_analysis_kind)k);
  to_analyses_free(r->a);
  cr_assert_eq(r->mem.bytes, 0);
}

static unsigned compared, added_up;

static void compare(const struct tt_stored *trace, const struct reading *r) {
  for (uint64_t i = 0; i < r[WHOLE].numbers.n; i++) {
    uint64_t whole = r[WHOLE].numbers.of[i], odd = r[ODD].numbers.of[i];
    uint64_t even = r[EVEN].numbers.of[i], none = r[NONE].numbers.of[i];
    bool goes_on = odd == whole && even == whole && none == whole;
    bool adds_up = odd + even == whole + none && odd <= whole && even <= whole && none <= odd;

    cr_expect(goes_on || (r->numbers.thins[i] && adds_up),
              "%s: number %lu: %lu, odd thinned %lu, even thinned %lu, all thinned %lu",
              trace->path, (unsigned long)i, (unsigned long)whole, (unsigned long)odd,
              (unsigned long)even, (unsigned long)none);
    compared++;
    added_up += !goes_on && odd != whole && even != whole;
  }
}

static void thin_each_way(const struct tt_stored *trace) {
  static struct reading r[WAYS];

  for (unsigned way = 0; way < WAYS; way++) {
    read_trace(trace, (enum way)way, &r[way]);
    cr_expect_eq(r[way].numbers.n, r[WHOLE].numbers.n);
    cr_expect_eq(r[way].generations, r[WHOLE].generations);
    cr_expect_eq(r[way].events, r[WHOLE].events);
    cr_expect_eq(memcmp(r[way].watched, r[WHOLE].watched, sizeof r->watched), 0, "%s", trace->path);
  }
  cr_expect_eq(r[WHOLE].thinned, 0);
  cr_expect_eq(r[NONE].thinned, r[NONE].events);
  cr_expect_eq(r[ODD].thinned + r[EVEN].thinned, r[WHOLE].events);
  compare(trace, r);
}

static void thin_seeds(void) {
  struct tt_pack seeds = tt_seeds_load();

  for (size_t i = 0; i < seeds.n; i++)
    thin_each_way(&(struct tt_stored){ "a seed", (unsigned char *)(uintptr_t)seeds.input[i].data,
                                       seeds.input[i].len });
  tt_pack_free(&seeds);
}

Test(thinned, counted_generations_add_up_and_all_else_goes_on) {
  tt_each_stored("tests/data", SIZE_MAX, thin_each_way);
  thin_seeds();
  cr_expect_gt(compared, 1000);
  cr_expect_gt(added_up, 50, "traces of several generations");
}
