/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all analyses over any input that the reader accepts: reports of every kind and window are consistent, rows are
 * bounded, figures made alone equal those of the report, an epoch drops open state, all memory is released. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/read_trace.h"
#include "fuzz/trace_budget.h"
#include "online/analysis/analysis.h"
#include "online/trace/reader.h"

enum { MEMORY_MAX = 64 << 20, FUEL = 100000, ROWS = 3, FIGURES = 64, TABLES = 16 };

static void look_at_span(void *self, const struct to_watched *span) {
  size_t *spans = self;

  FUZZ_CHECK(span->what <= TO_WORLD_RESTARTED);
  ++*spans;
}

static void look_at_task(void *self, const struct to_watched_task *task) {
  size_t *spans = self;

  (*spans)++;
  FUZZ_CHECK(task->end >= task->begin);
}

static void look_at_event(void *self, const struct to_generation *gen, const struct to_event *ev) {
  (void)self, (void)gen;
  FUZZ_CHECK(ev->type < 64);
}

static void check_sum(const struct to_sum *sum) {
  FUZZ_CHECK(sum->lower_bounds <= sum->count && (sum->count > 0 || sum->total_ns == 0));
}

static void check_distribution(const struct to_distribution *d) {
  check_sum(&d->sum);
  FUZZ_CHECK(d->p50_ns <= d->p90_ns && d->p90_ns <= d->p99_ns && d->p99_ns <= d->p999_ns);
  FUZZ_CHECK(d->p999_ns <= d->sum.max_ns);
}

static void check_values(const struct to_field *field, unsigned n, const struct to_value *value) {
  for (unsigned i = 0; i < n; i++) {
    if (value[i].none) continue;
    if (field[i].type == TO_VALUE_DISTRIBUTION) check_distribution(value[i].distribution);
    if (field[i].type == TO_VALUE_SHARE) FUZZ_CHECK(value[i].share >= 0 && value[i].share <= 1);
    if (field[i].type == TO_VALUE_TEXT) FUZZ_CHECK(value[i].text.data[value[i].text.len] == '\0');
    if (field[i].type == TO_VALUE_STACK) FUZZ_CHECK(value[i].stack != NULL);
    if (field[i].type == TO_VALUE_NS) FUZZ_CHECK(value[i].number >= 0);
  }
}

static void check_report(const struct to_report *r) {
  const struct to_schema *schema = r->schema;

  check_values(schema->option, schema->options, r->option);
  check_values(schema->figure, schema->figures, r->figure);
  for (unsigned t = 0; t < schema->tables; t++) {
    const struct to_table *table = &r->table[t];
    FUZZ_CHECK(table->rows <= ROWS + 1 && table->rows <= table->rows_total + table->has_other);
    for (size_t i = 0; i < table->rows; i++)
      check_values(schema->table[t].column, schema->table[t].columns,
                   to_table_row(&schema->table[t], table, i));
  }
}

struct figures { /* a report lends them until the next one */
  unsigned n;
  struct to_value value[FIGURES];
  struct to_distribution distribution[FIGURES];
  size_t rows_total[TABLES];
};

static void keep_figures(const struct to_report *r, struct figures *out) {
  FUZZ_CHECK(r->schema->figures <= FIGURES && r->schema->tables <= TABLES);
  for (unsigned t = 0; t < r->schema->tables; t++) out->rows_total[t] = r->table[t].rows_total;
  out->n = r->schema->figures;
  for (unsigned i = 0; i < out->n; i++) {
    out->value[i] = r->figure[i];
    if (r->schema->figure[i].type == TO_VALUE_DISTRIBUTION)
      out->distribution[i] = *r->figure[i].distribution;
  }
}

static void compare_distributions(const struct to_distribution *a,
                                  const struct to_distribution *b) {
  FUZZ_CHECK(memcmp(&a->sum, &b->sum, sizeof a->sum) == 0);
  FUZZ_CHECK(a->has_quantiles == b->has_quantiles && a->p50_ns == b->p50_ns &&
             a->p90_ns == b->p90_ns && a->p99_ns == b->p99_ns && a->p999_ns == b->p999_ns);
}

/* Checks that a report made of the figures alone has the same figures as a whole report. */
static void check_figures(const struct figures *kept, const struct to_report *r) {
  for (unsigned t = 0; t < r->schema->tables; t++)
    FUZZ_CHECK(r->table[t].rows_total == kept->rows_total[t] && r->table[t].rows == 0);
  for (unsigned i = 0; i < kept->n; i++) {
    FUZZ_CHECK(kept->value[i].none == r->figure[i].none);
    if (r->figure[i].none) continue;
    if (r->schema->figure[i].type == TO_VALUE_DISTRIBUTION)
      compare_distributions(&kept->distribution[i], r->figure[i].distribution);
    else
      FUZZ_CHECK(kept->value[i].number == r->figure[i].number);
  }
}

static void ask(struct to_analyses *a, enum to_analysis_kind kind, enum to_window window) {
  const struct to_report *report;
  struct figures figures;

  if (to_analyses_report(a, kind, window, ROWS, &report) != TB_OK) return;
  check_report(report);
  keep_figures(report, &figures);
  if (to_analyses_figures(a, kind, window, true, &report) == TB_OK) check_figures(&figures, report);
}

static void ask_all(struct to_analyses *a) {
  to_analyses_overdue(a, 1);
  for (unsigned kind = 0; kind < TO_ANALYSIS_KINDS; kind++)
    for (unsigned window = 0; window < TO_WINDOWS; window++)
      ask(a, (enum to_analysis_kind)kind, (enum to_window)window);
}

struct asked {
  struct to_analyses *a;
  unsigned slices;
};

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct asked *asked = self;

  TB_TRY(to_analyses_events(asked->a, gen, events, n));
  if (asked->slices++ % 8 == 7) ask_all(asked->a);
  return TB_OK;
}

static void look_at_finding(void *self, const struct to_finding *finding) {
  (void)self;
  FUZZ_CHECK(finding->kind < TO_FINDINGS);
  FUZZ_CHECK(finding->words.len == 0 || finding->words.data[finding->words.len] == 0);
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  const struct asked *asked = self;
  const struct to_finding_sink sink = { NULL, look_at_finding };
  tb_rc rc = to_analyses_generation_ends(asked->a, gen);
  to_analyses_thin(asked->a, asked->slices % 3 == 1);

  if (rc == TB_OK) rc = to_analyses_findings(asked->a, &sink);
  FUZZ_CHECK(rc == TB_OK || rc == TB_BUDGET || rc == TB_NOMEM);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const struct to_analysis_config config = { .blocked_after_ns = 1000,
                                             .stacks_max = 4 + size % 40,
                                             .every_curve = size % 2 == 1 };
  const struct to_limits limits = { .fuel_tries = FUEL };
  struct asked asked = { 0 };
  size_t spans = 0;
  struct to_watch watch = { .self = &spans,
                            .span = look_at_span,
                            .syscall_ns = 1,
                            .task = look_at_task,
                            .task_ns = 1,
                            .events = UINT64_MAX,
                            .event = look_at_event };
  struct to_event_sink sink = { &asked, take_events };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  FUZZ_CHECK(to_analyses_new(&mem, &config, &asked.a) == TB_OK);
  FUZZ_CHECK(to_reader_new(&mem, &limits, TO_READER_BYTES_STAY, sink, &diag, &reader) == TB_OK);
  to_reader_on_end(reader, &asked, end_generation);
  tt_tighten(&mem, size);
  if (size % 2 == 0) to_analyses_watch(asked.a, &watch);
  /* Fed a second time as the same stream's next file, after a gap. */
  for (int file = 0; file < 2; file++) {
    tb_rc rc = tt_read_trace(reader, data, size, size);
    if (rc != TB_OK) rc = to_analyses_generation_ends(asked.a, NULL);
    FUZZ_CHECK(rc == TB_OK || rc == TB_BUDGET || rc == TB_NOMEM);
    ask_all(asked.a);
    to_analyses_epoch(asked.a);
    FUZZ_CHECK(to_reader_begin(reader) == TB_OK);
    to_reader_epoch(reader);
    tb_diag_clear(&diag);
  }
  ask_all(asked.a);
  to_reader_free(reader);
  to_analyses_free(asked.a);
  FUZZ_CHECK(mem.bytes == 0);
  return 0;
}
