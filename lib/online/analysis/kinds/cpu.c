/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples by stack, entry function, label and state of the goroutine: one sum for each combination. */
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "online/analysis/analysis_state.h"
#include "online/event/text.h"

enum { TEXT_CHUNK_BYTES = 2 << 10, LABELS_MAX = 1024 };

/* Indices of labels. */
enum { NO_LABEL, OTHER_LABEL, LABELS_FIRST };
#define NO_SAMPLES                                                                                 \
  "This trace has no CPU samples. A Go program writes them while it is profiled "                  \
  "(runtime/pprof.StartCPUProfile), a C program with samples_hz in its agent's configuration "     \
  "(TRACEAGENT_SAMPLES)."
#define NO_LABEL_TEXT "(no label)"

enum sampled { NO_GOROUTINE, RUNNING, IN_SYSCALL, NOT_RUNNING, STATES };
static const char *const state_name[STATES] = {
  [NO_GOROUTINE] = "no goroutine",
  [RUNNING] = "running",
  [IN_SYSCALL] = "syscall",
  [NOT_RUNNING] = "not running",
};

struct to_cpu_sum {
  uint32_t stack, label, series;
  uint8_t state;
};

struct to_cpu {
  struct tb_arena text;
  struct to_string *label;
  size_t labels, labels_room;
  struct tb_map by_label, by_key;
  struct to_cpu_sum *sum; /* the first STATES are sums of what exceeds the limit, by state */
  size_t sums, room;
  uint64_t secret;
  uint32_t samples; /* series */
  bool seen;
};

static struct to_cpu *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_CPU];
}

enum { SAMPLES, HAS_SAMPLES, FIGURES };
static const struct to_field figure[FIGURES] = {
  [SAMPLES] = { "samples", TO_VALUE_COUNT,
                .about = "CPU samples; Go takes 100 in each second of CPU time." },
  [HAS_SAMPLES] = { "has_samples", TO_VALUE_FLAG, .about = "1: the trace has CPU samples." },
};
enum { KEY, KEY_SAMPLES, KEY_SHARE, KEY_COLUMNS };
#define COLUMNS(its_name, its_type, its_about)                                                     \
  {                                                                                                \
    [KEY] = { its_name, its_type, .about = its_about },                                            \
    [KEY_SAMPLES] = { "samples", TO_VALUE_COUNT },                                                 \
    [KEY_SHARE] = { "samples_share", TO_VALUE_SHARE, .about = "Of all samples of the window." },   \
  }
static const struct to_field stack_column[KEY_COLUMNS] =
    COLUMNS("stack", TO_VALUE_STACK, "What the thread ran.");
static const struct to_field entry_column[KEY_COLUMNS] =
    COLUMNS("entry", TO_VALUE_TEXT, "The outermost function of the sample's stack.");
static const struct to_field label_column[KEY_COLUMNS] = COLUMNS(
    "label", TO_VALUE_TEXT, "The goroutine's label; Go labels workers of the garbage collector.");
static const struct to_field state_column[KEY_COLUMNS] =
    COLUMNS("state", TO_VALUE_TEXT,
            "What the trace says of the goroutine then; no goroutine: the thread ran the runtime's "
            "own code.");

enum { BY_STACK, BY_ENTRY, BY_LABEL, BY_STATE, TABLES };
#define BY_KEY(its_name, its_about, its_columns)                                                   \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "most samples first", .keys = 1,          \
    .columns = KEY_COLUMNS, .column = its_columns, .order = {                                      \
      { KEY_SAMPLES + 1 }                                                                          \
    }                                                                                              \
  }
static const struct to_table_schema table[TABLES] = {
  [BY_STACK] = BY_KEY("by_stack", "By stack", stack_column),
  [BY_ENTRY] = BY_KEY("by_entry", "By entry function", entry_column),
  [BY_LABEL] = BY_KEY("by_label", "By the goroutine's label", label_column),
  [BY_STATE] = BY_KEY("by_state", "By the goroutine's state", state_column),
};

static tb_rc add_sum(struct to_analyses *a, const struct to_cpu_sum *like) {
  struct to_cpu *s = state(a);
  struct to_cpu_sum sum = *like;

  TB_TRY(TB_MEM_GROW(a->mem, s->sum, s->room, s->sums));
  TB_TRY(to_windows_series(&a->windows, s->samples, &sum.series));
  s->sum[s->sums++] = sum;
  return TB_OK;
}

static tb_rc cpu_init(struct to_analyses *a) {
  struct to_cpu *s = state(a);

  tb_arena_init(&s->text, a->mem, TEXT_CHUNK_BYTES);
  tb_map_init(&s->by_label, a->mem, tb_seed());
  tb_map_init(&s->by_key, a->mem, tb_seed());
  s->secret = tb_seed();
  while (s->labels < LABELS_FIRST) {
    TB_TRY(TB_MEM_GROW(a->mem, s->label, s->labels_room, s->labels));
    s->label[s->labels++] = (struct to_string){ 0 };
  }
  s->label[NO_LABEL] = (struct to_string){ NO_LABEL_TEXT, sizeof(NO_LABEL_TEXT) - 1 };
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->samples));
  for (uint8_t sampled = 0; sampled < STATES; sampled++)
    TB_TRY(add_sum(a, &(struct to_cpu_sum){
                          .stack = TO_STACK_OTHER, .label = OTHER_LABEL, .state = sampled }));
  return TB_OK;
}

static void cpu_fini(struct to_analyses *a) {
  struct to_cpu *s = state(a);

  tb_arena_fini(&s->text);
  tb_map_fini(&s->by_label);
  tb_map_fini(&s->by_key);
  tb_mem_free(a->mem, s->label, s->labels_room * sizeof(*s->label));
  tb_mem_free(a->mem, s->sum, s->room * sizeof(*s->sum));
}

static tb_rc add_label_text(struct to_analyses *a, struct to_string text, uint64_t *out) {
  struct to_cpu *s = state(a);
  char *copy;

  TB_TRY(TB_MEM_GROW(a->mem, s->label, s->labels_room, s->labels));
  TB_TRY(tb_arena_alloc(&s->text, text.len + 1, &copy));
  memcpy(copy, text.data, text.len);
  copy[text.len] = '\0';
  s->label[s->labels] = (struct to_string){ copy, text.len };
  *out = s->labels++;
  return TB_OK;
}

static tb_rc find_label(struct to_analyses *a, struct to_string text, uint32_t *out) {
  struct to_cpu *s = state(a);
  uint64_t *place;
  bool fresh;

  *out = NO_LABEL;
  if (text.len == 0) return TB_OK;
  *out = OTHER_LABEL;
  uint64_t hash = tb_hash(s->secret, text.data, text.len);
  if (s->labels == LABELS_MAX && tb_map_find(&s->by_label, hash) == NULL) return TB_OK;
  TB_TRY(tb_map_put(&s->by_label, hash, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_label_text(a, text, place);
    if (rc != TB_OK) {
      tb_map_remove(&s->by_label, hash);
      return rc;
    }
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static tb_rc find_sum(struct to_analyses *a, const struct to_cpu_sum *like, size_t *out) {
  struct to_cpu *s = state(a);
  uint64_t key = (uint64_t)like->stack << 32 | like->label << 8 | like->state, *place;
  bool fresh;

  *out = like->state;
  if (s->sums >= a->config.stacks_max + STATES && tb_map_find(&s->by_key, key) == NULL)
    return TB_OK;
  TB_TRY(tb_map_put(&s->by_key, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_sum(a, like);
    if (rc != TB_OK) {
      tb_map_remove(&s->by_key, key);
      return rc;
    }
    *place = s->sums - 1;
  }
  *out = (size_t)*place;
  return TB_OK;
}

static enum sampled sampled_state(const struct to_span *span) {
  if (span->id == TO_NONE) return NO_GOROUTINE;
  if (span->state == TO_GO_RUNNING) return RUNNING;
  return span->state == TO_GO_SYSCALL ? IN_SYSCALL : NOT_RUNNING;
}

static tb_rc cpu_span(struct to_analyses *a, const struct to_generation *gen,
                      const struct to_span *span) {
  struct to_cpu_sum like = { .state = (uint8_t)sampled_state(span) };
  struct to_string label = span->more == NULL ? (struct to_string){ 0 } : span->more->name;
  size_t sum;

  state(a)->seen = true;
  TB_TRY(to_spans_stack(a->spans, gen, span->stack, &like.stack));
  TB_TRY(find_label(a, label, &like.label));
  TB_TRY(find_sum(a, &like, &sum));
  to_windows_sum(&a->windows, state(a)->sum[sum].series, span->until, span->until, 0, false);
  return TB_OK;
}

static void add_samples(struct to_draft_value *row, uint64_t samples) {
  int64_t before = row[KEY_SAMPLES].value.none ? 0 : row[KEY_SAMPLES].value.number;

  to_draft_number(&row[KEY_SAMPLES], before + (int64_t)samples);
}

/* Returns the outermost frame except runtime.goexit. The text's address is a key: a stack table stores each text
 * once. */
static struct to_string entry_of(const struct to_callstack *stack) {
  size_t n = stack->len;

  if (n > 1 && to_string_is(stack->frames[n - 1]->function, "runtime.goexit")) n--;
  return n == 0 ? (struct to_string){ "", 0 } : stack->frames[n - 1]->function;
}

static tb_rc add_stack(struct to_analyses *a, struct to_draft *d, uint32_t stack,
                       uint64_t samples) {
  const struct to_callstack *frames = to_stack_table_stack(a->stacks, stack);
  struct to_draft_value *row;

  if (frames == NULL) {
    TB_TRY(to_draft_other(d, BY_STACK, &row));
    add_samples(row, samples);
    TB_TRY(to_draft_other(d, BY_ENTRY, &row));
    add_samples(row, samples);
    return TB_OK;
  }
  TB_TRY(to_draft_row(d, BY_STACK, stack, &row));
  to_draft_stack(&row[KEY], frames);
  add_samples(row, samples);
  struct to_string entry = entry_of(frames);
  TB_TRY(to_draft_row(d, BY_ENTRY, entry.len == 0 ? 0 : (uintptr_t)entry.data, &row));
  to_draft_text(&row[KEY], entry);
  add_samples(row, samples);
  return TB_OK;
}

static tb_rc add_label(struct to_analyses *a, struct to_draft *d, uint32_t label,
                       uint64_t samples) {
  struct to_draft_value *row;

  if (label == OTHER_LABEL) {
    TB_TRY(to_draft_other(d, BY_LABEL, &row));
  } else {
    TB_TRY(to_draft_row(d, BY_LABEL, label, &row));
    to_draft_text(&row[KEY], state(a)->label[label]);
  }
  add_samples(row, samples);
  return TB_OK;
}

static tb_rc report_sums(struct to_analyses *a, struct to_draft *d, uint64_t *out_samples) {
  const struct to_cpu *s = state(a);
  struct to_draft_value *row;

  for (const struct to_cpu_sum *sum = s->sum; sum < s->sum + s->sums; sum++) {
    uint64_t samples = to_view_sum(d->view, sum->series).count;
    if (samples == 0) continue;
    *out_samples += samples;
    TB_TRY(add_stack(a, d, sum->stack, samples));
    TB_TRY(add_label(a, d, sum->label, samples));
    TB_TRY(to_draft_row(d, BY_STATE, sum->state, &row));
    const char *name = state_name[sum->state];
    to_draft_text(&row[KEY], (struct to_string){ name, strlen(name) });
    add_samples(row, samples);
  }
  return TB_OK;
}

static void report_shares(struct to_draft *d, uint64_t samples) {
  for (unsigned t = 0; t < TABLES; t++)
    for (size_t i = 0; i < d->table[t].rows; i++) {
      struct to_draft_value *row = d->table[t].row[i];
      to_draft_share(&row[KEY_SHARE], (double)row[KEY_SAMPLES].value.number / (double)samples);
    }
}

static tb_rc cpu_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  uint64_t samples = 0;

  (void)view;
  TB_TRY(report_sums(a, d, &samples));
  report_shares(d, samples);
  to_draft_number(to_draft_figure(d, SAMPLES), (int64_t)samples);
  to_draft_number(to_draft_figure(d, HAS_SAMPLES), state(a)->seen);
  return state(a)->seen ? TB_OK : to_draft_note(d, NO_SAMPLES);
}

const struct to_analysis_ops to__analysis_cpu = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_cpu),
  .spans = TO_WANT(SAMPLE),
  .init = cpu_init,
  .fini = cpu_fini,
  .span = cpu_span,
  .report = cpu_report,
};
