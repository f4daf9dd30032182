/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/diff/print.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/summary/summary.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/table.h"

enum { SENTENCES = 8, TRIED_MAX = 200 }; /* each that is tried costs some draws */

/* A row of each side; one may be NULL. */
struct both {
  const struct tk_diff_row *a, *b;
  uint64_t total_ns;
};

static const struct tk_diff_row *one_of(const struct both *both) {
  return both->a != NULL ? both->a : both->b;
}

static uint64_t total_of(const struct tk_diff_row *row) {
  uint64_t total = 0;

  for (unsigned i = 0; row != NULL && i < TK_SAMPLES_MAX; i++) total += row->total_ns[i];
  return total;
}

/* Sums of metrics first, then by time. */
static int compare_both(const void *x, const void *y) {
  const struct both *a = x, *b = y;
  bool a_is_sum = one_of(a)->key[0] == 0, b_is_sum = one_of(b)->key[0] == 0;

  if (a_is_sum != b_is_sum) return a_is_sum ? -1 : 1;
  if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
  return strcmp(one_of(a)->key, one_of(b)->key);
}

static size_t list_row(struct both *list, size_t n, const struct tk_diff_row *a,
                       const struct tk_diff_row *b) {
  list[n] = (struct both){ a, b, total_of(a) + total_of(b) };
  return n + 1;
}

static size_t collect(const struct tk_comparison *c, enum tk_diff_metric metric,
                      struct both *list) {
  size_t n = 0;

  for (size_t i = 0; i < c->a->rows; i++) {
    const struct tk_diff_row *row = c->a->row[i];
    if (row->metric == metric) n = list_row(list, n, row, tk_samples_find(c->b, metric, row->key));
  }
  for (size_t i = 0; i < c->b->rows; i++) {
    const struct tk_diff_row *row = c->b->row[i];
    if (row->metric == metric && tk_samples_find(c->a, metric, row->key) == NULL)
      n = list_row(list, n, NULL, row);
  }
  if (n > 0) qsort(list, n, sizeof *list, compare_both);
  return n;
}

/* A number a second has three digits, and no exponent. */
static const char *format_value(enum tk_diff_field field, double value, char out[TK_FORMAT_BYTES]) {
  if (tk_diff_field_is_ns(field)) return tk_format_ns((uint64_t)value, out);
  if (value >= 99.95) return tk_format_count((uint64_t)(value + 0.5), out);
  if (value > 0 && value < 0.01)
    snprintf(out, TK_FORMAT_BYTES, "<0.01");
  else
    snprintf(out, TK_FORMAT_BYTES, "%.*f", value == 0 ? 0 : value >= 9.995 ? 1 : 2, value);
  return out;
}

static void add_value(struct tk_table *t, enum tk_diff_field field, double value) {
  char text[TK_FORMAT_BYTES];

  tk_table_add(t, "%s", format_value(field, value, text));
}

/* A star: significant. ~: the two figures differ no more than by their error. */
static const char *mark_of(const struct tk_change *change) {
  if (tk_change_is_significant(change)) return " *";
  return change->may_be_error && change->a != change->b ? " ~" : "";
}

static void add_change(struct tk_table *t, const struct tk_change *change) {
  if (!change->has_share)
    tk_table_add(t, "%s", change->b > 0 ? "new" : "-");
  else if (change->b <= 0)
    tk_table_add(t, "gone");
  else if (!change->has_interval)
    tk_table_add(t, "%+.1f %%%s", 100 * change->share, mark_of(change));
  else
    tk_table_add(t, "%+.1f %% (%+.0f..%+.0f)%s", 100 * change->share, 100 * change->low,
                 100 * change->high, mark_of(change));
}

static void add_row(struct tk_comparison *c, struct tk_table *t, const struct both *both) {
  static const enum tk_diff_field shown[] = { TK_DIFF_PER_SECOND, TK_DIFF_MEAN, TK_DIFF_P99 };
  const char *key = one_of(both)->key;

  tk_table_add(t, "%.100s", key[0] != 0 ? key : "all");
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    struct tk_change change = tk_compare(c, both->a, both->b, shown[i]);
    add_value(t, shown[i], change.a);
    add_value(t, shown[i], change.b);
    add_change(t, &change);
  }
}

static void print_metric(struct tk_comparison *c, enum tk_diff_metric metric,
                         const struct both *list, size_t n, size_t rows) {
  static const char *const about[] = {
#define METRIC(id, name, key, about) name ": " about ", by " key,
    TK_DIFF_METRICS(METRIC)
#undef METRIC
  };
  size_t shown = rows == 0 || n < rows + 1 ? n : rows + 1; /* plus the sum */
  struct tk_table t;

  printf("%s%s\n", metric == 0 ? "" : "\n", about[metric]);
  if (n == 0) puts("  none ended");
  if (n == 0) return;
  tk_table_init(&t, "KEY,>A/S,>B/S,>CHANGE,>A MEAN,>B MEAN,>CHANGE,>A P99,>B P99,>CHANGE");
  for (size_t i = 0; i < shown; i++) add_row(c, &t, &list[i]);
  tk_table_print(&t, stdout, false);
  tk_table_fini(&t);
  if (shown < n) printf("and %zu more (--top 0: all)\n", n - shown);
}

/* ---- what changed, in sentences ---- */

/* A row, and how much more or less time it takes in each second of the trace. */
struct effect {
  struct both both;
  double ns; /* the change of that time, without its sign */
};

static double time_of(const struct tk_diff_row *row, const struct tk_samples *samples) {
  uint64_t ns = 0;

  for (unsigned i = 0; i < samples->samples; i++) ns += samples->ns[i];
  return ns > 0 ? (double)total_of(row) / (double)ns * 1e9 : 0;
}

static double mean_of(const struct tk_diff_row *row) {
  uint64_t count = 0;

  for (unsigned i = 0; row != NULL && i < TK_SAMPLES_MAX; i++) count += row->count[i];
  return count > 0 ? (double)total_of(row) / (double)count : 0;
}

static bool is_users(const struct tk_diff_row *row) {
  return row->metric == TK_DIFF_TASK || row->metric == TK_DIFF_REGION;
}

/* Users of the program feel tasks that take longer: these come first. */
static bool is_felt(const struct effect *e) {
  return is_users(one_of(&e->both)) && e->both.a != NULL && e->both.b != NULL &&
         mean_of(e->both.b) > 1.05 * mean_of(e->both.a);
}

static int compare_effects(const void *x, const void *y) {
  const struct effect *a = x, *b = y;

  if (is_felt(a) != is_felt(b)) return is_felt(a) ? -1 : 1;
  if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
  return strcmp(one_of(&a->both)->key, one_of(&b->both)->key);
}

/* Sums are left out, and what the runtime's goroutines do. */
static bool is_told(const struct tk_diff_row *row) {
  const char *place = strstr(row->key, " at ");

  if (row->key[0] == '\0') return false;
  if (row->metric == TK_DIFF_STW || row->metric == TK_DIFF_GC || is_users(row)) return true;
  return !tp_is_foreign(place != NULL ? place + 4 : row->key);
}

static size_t list_effects(struct tk_comparison *c, struct both *list, struct effect *out) {
  size_t effects = 0;

  for (unsigned m = 0; m < TK_DIFF_METRIC_COUNT; m++) {
    size_t n = collect(c, (enum tk_diff_metric)m, list);
    for (size_t i = 0; i < n; i++)
      if (is_told(one_of(&list[i])))
        out[effects++] =
            (struct effect){ list[i], fabs(time_of(list[i].b, c->b) - time_of(list[i].a, c->a)) };
  }
  if (effects > 0) qsort(out, effects, sizeof *out, compare_effects);
  return effects;
}

/* "Waits at main.reserve:27 (sync)". */
static void say_subject(const struct tk_diff_row *row) {
  const char *key = row->key, *place = strstr(key, " at ");

  switch (row->metric) {
  case TK_DIFF_SCHED: printf("Waits for a P, of goroutines of %.100s", key); return;
  case TK_DIFF_RUNNING: printf("CPU time, of goroutines of %.100s", key); return;
  case TK_DIFF_SYSCALL: printf("System calls at %.100s", key); return;
  case TK_DIFF_STW: printf("Stop-the-world pauses (%.60s)", key); return;
  case TK_DIFF_GC: printf("Garbage collection (%.60s)", key); return;
  case TK_DIFF_TASK: printf("Task %.100s", key); return;
  case TK_DIFF_REGION: printf("Region %.100s", key); return;
  default: break;
  }
  if (place == NULL)
    printf("Waits (%.60s)", key);
  else
    printf("Waits at %.100s (%.*s)", place + 4, (int)(place - key < 60 ? place - key : 60), key);
}

static void say_change(enum tk_diff_field field, const struct tk_change *change) {
  static const char *const after[] = { [TK_DIFF_PER_SECOND] = " a second",
                                       [TK_DIFF_TIME] = " in each second",
                                       [TK_DIFF_MEAN] = " on average",
                                       [TK_DIFF_P99] = " (p99)" };
  char a[TK_FORMAT_BYTES], b[TK_FORMAT_BYTES];

  printf(": %s%s, was %s: %+.0f %% (%+.0f..%+.0f)", format_value(field, change->b, b), after[field],
         format_value(field, change->a, a), 100 * change->share, 100 * change->low,
         100 * change->high);
}

/* Finds the first change of a row that is significant: of its length, of its longest, of its number. */
static bool find_change(struct tk_comparison *c, const struct both *both, enum tk_diff_field *out,
                        struct tk_change *change) {
  static const enum tk_diff_field fields[] = { TK_DIFF_MEAN, TK_DIFF_P99, TK_DIFF_TIME,
                                               TK_DIFF_PER_SECOND };

  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    *out = fields[i];
    *change = tk_compare(c, both->a, both->b, fields[i]);
    if (change->has_share && change->has_interval && change->b > 0 &&
        tk_change_is_significant(change))
      return true;
  }
  return false;
}

/* A row of one side only has no interval: it is told if it takes a hundredth of the time. */
static bool say_one_sided(const struct effect *e, unsigned number) {
  char time[TK_FORMAT_BYTES];

  if (e->ns < 1e7) return false;
  printf("%u. ", number);
  say_subject(one_of(&e->both));
  printf(": %s, %s in each second\n", e->both.a == NULL ? "new" : "gone",
         tk_format_ns((uint64_t)e->ns, time));
  return true;
}

static bool say_effect(struct tk_comparison *c, const struct effect *e, unsigned number) {
  enum tk_diff_field field;
  struct tk_change change;

  if (e->both.a == NULL || e->both.b == NULL) return say_one_sided(e, number);
  if (!find_change(c, &e->both, &field, &change)) return false;
  printf("%u. ", number);
  say_subject(e->both.a);
  say_change(field, &change);
  putchar('\n');
  return true;
}

static bool say_changes(struct tk_comparison *c, struct both *list) {
  struct effect *effect = calloc(c->a->rows + c->b->rows + 1, sizeof *effect);
  unsigned told = 0;

  if (effect == NULL) return false;
  size_t n = list_effects(c, list, effect);
  for (size_t i = 0; i < n && i < TRIED_MAX && told < SENTENCES; i++)
    told += say_effect(c, &effect[i], told + 1);
  puts(told == 0 ? "No significant change.\n" : "");
  free(effect);
  puts("A change has its 95 % interval, and a * where that is on one side of zero.");
  printf("P99 is at most %.1f %% off on each side. Its interval includes that, and a ~ marks a "
         "change that may be no more.\n\n",
         100 * tk_diff_field_error(TK_DIFF_P99));
  return true;
}

/* ---- JSON ---- */

static json_t *number_of(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *change_of(const struct tk_change *change, enum tk_diff_field field) {
  bool is_ns = tk_diff_field_is_ns(field);

  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:s?}", is_ns ? "a_ns" : "a", number_of(change->a),
                   is_ns ? "b_ns" : "b", number_of(change->b), "error_share",
                   number_of(tk_diff_field_error(field)), "change_share",
                   change->has_share ? number_of(change->share) : json_null(), "low_share",
                   change->has_interval ? number_of(change->low) : json_null(), "high_share",
                   change->has_interval ? number_of(change->high) : json_null(), "significant",
                   tk_change_is_significant(change), "may_be", tk_change_explanation(change));
}

static bool print_json(struct tk_comparison *c, enum tk_diff_metric metric,
                       const struct both *both) {
  const char *key = one_of(both)->key;
  json_t *text = json_string(key);
  json_t *line = json_pack("{s:s,s:o}", "metric", tk_diff_metric_name(metric), "key",
                           text != NULL ? text : json_string("\xef\xbf\xbd"));

  if (line == NULL) return false;
  for (unsigned f = 0; f < TK_DIFF_FIELDS; f++) {
    enum tk_diff_field field = (enum tk_diff_field)f;
    struct tk_change change = tk_compare(c, both->a, both->b, field);
    json_object_set_new(line, tk_diff_field_name(field), change_of(&change, field));
  }
  json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
  putchar('\n');
  json_decref(line);
  return true;
}

bool tk_diff_print(struct tk_comparison *c, size_t rows, bool json) {
  struct both *list = calloc(c->a->rows + c->b->rows + 1, sizeof *list);
  bool whole = list != NULL;

  if (whole && !json) whole = say_changes(c, list);
  for (unsigned m = 0; whole && m < TK_DIFF_METRIC_COUNT; m++) {
    enum tk_diff_metric metric = (enum tk_diff_metric)m;
    size_t n = collect(c, metric, list);
    size_t shown = rows == 0 || n < rows + 1 ? n : rows + 1;
    if (!json) print_metric(c, metric, list, n, rows);
    for (size_t i = 0; json && whole && i < shown; i++) whole = print_json(c, metric, &list[i]);
  }
  free(list);
  return whole;
}
