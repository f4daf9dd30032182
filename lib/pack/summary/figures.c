/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about the whole program: tasks, pauses, waits for a P, the garbage collector, numbers that grow. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pack/summary/private.h"

enum { MORE_BYTES = 400 };
static const uint64_t ms = 1000000, s = 1000000000;

typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Report Report;

static const Distribution *figure_distribution(const Report *r, const char *name) {
  return tp_value_distribution(tp_report_figure(r, name));
}

/* The more times longer than the least, the more; at most 99. */
static double grade(uint64_t ns, uint64_t least_ns) {
  double grade = ns > least_ns ? 10 * log2((double)ns / (double)least_ns) : 0;

  return grade < 99 ? grade : 99;
}

static uint64_t p99_of(const Distribution *d) {
  return d->no_quantiles ? d->max_ns : d->p99_ns;
}

static bool is_found(const struct tp_summary_of *of, const char *kind, const char *cause) {
  for (size_t i = 0; i < of->findings; i++)
    if (strcmp(of->finding[i].kind, kind) == 0 &&
        (cause == NULL || strcmp(of->finding[i].cause, cause) == 0))
      return true;
  return false;
}

/* ---- tasks ---- */

/* Writes ", mostly (98 %) waiting for channels", if one thing took half of its regions' time or more. */
static void write_most(const struct tp_table *table, const Tracecollect__V1__Row *row,
                       char out[TP__PLACE]) {
  static const struct {
    const char *column, *words;
  } parts[] = {
    { "execution_ns", "running" },
    { "sched_wait_ns", "waiting for a P" },
    { "sync_ns", "waiting for locks" },
    { "chan_ns", "waiting for channels" },
    { "net_ns", "waiting for the network" },
    { "sleep_ns", "sleeping" },
    { "block_other_ns", "in other waits" },
    { "syscall_ns", "in system calls" },
    { "syscall_block_ns", "in blocking system calls" },
    { "gc_assist_ns", "helping the garbage collector" },
  };
  uint64_t all = 0, most = 0;
  const char *what = "";
  char share[TP__WORDS];

  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    uint64_t ns = (uint64_t)tp_row_number(row, tp_table_column(table, parts[i].column));
    all += ns;
    if (ns <= most) continue;
    most = ns;
    what = parts[i].words;
  }
  out[0] = '\0';
  if (all > 0 && most >= all / 2)
    snprintf(out, TP__PLACE, ", mostly (%s) %s", tp__share_words((double)most / (double)all, share),
             what);
}

static bool is_outlier(const Distribution *d) {
  uint64_t median = d->no_quantiles ? d->total_ns / d->count : d->p50_ns;

  return d->count >= 5 && d->max_ns >= 10 * ms && d->max_ns / 5 >= median;
}

/* A slow task may have waited for a system call that took as long: `why` knows, this is a hint. */
static tb_rc write_call(struct tp_summary *summary, const struct tp_summary_of *of,
                        const Distribution *d, char out[TP__CALL]) {
  char place[TP__PLACE], time[TP__WORDS];
  uint64_t ns;

  out[0] = '\0';
  if (!is_outlier(d)) return TB_OK;
  TB_TRY(tp__longest_call(summary, of, place, &ns));
  if (ns >= d->max_ns / 2 && ns / 21 <= d->max_ns / 20)
    snprintf(out, TP__CALL, "; a system call %s %s took %s", tp__at(place), place,
             tp__ns_words(ns, time));
  return TB_OK;
}

static tb_rc say_type(struct tp_summary *summary, const struct tp_summary_of *of,
                      const struct tp_table *table, const Tracecollect__V1__Row *row) {
  const char *type = tp_row_text(row, tp_table_column(table, "type")), *quoted;
  const Distribution *d = tp_row_distribution(row, tp_table_column(table, "latency"));
  char max[TP__WORDS], p50[TP__WORDS], p99[TP__WORDS], count[TP__WORDS], most[TP__PLACE];
  char more[MORE_BYTES], call[TP__CALL];

  TB_TRY(write_call(summary, of, d, call));
  TB_TRY(tp_summary_quote(summary->arena, type, &quoted));
  snprintf(more, sizeof more, "--slow %s", quoted);
  write_most(table, row, most);
  struct tp__draft draft = { .kind = "task", .report = "tasks", .more = more, .is_why = true };
  draft.is_open = is_found(of, "slow_task", type);
  draft.weight = draft.is_open   ? 720
                 : is_outlier(d) ? 600 + grade(d->max_ns, 10 * ms)
                                 : 30 + grade(d->max_ns, ms) / 2;
  if (strlen(quoted) > MORE_BYTES / 2 || type[0] == '\0') draft.is_why = false, draft.more = NULL;
  if (d->count == 1)
    return tp__say(summary, of, &draft, "Task %.120s: the only one took %s%s", type,
                   tp__ns_words(d->max_ns, max), most);
  if (d->no_quantiles)
    return tp__say(summary, of, &draft, "Task %.120s: the slowest of %s took %s%s%s", type,
                   tp__count_words(d->count, count), tp__ns_words(d->max_ns, max), most, call);
  return tp__say(summary, of, &draft,
                 "Task %.120s: p99 %s, median %s, the slowest of %s took %s%s%s", type,
                 tp__ns_words(d->p99_ns, p99), tp__ns_words(d->p50_ns, p50),
                 tp__count_words(d->count, count), tp__ns_words(d->max_ns, max), most, call);
}

/* Outliers, and if there is none the type with the worst p99. */
static tb_rc say_tasks(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Tracecollect__V1__Row *worst = NULL;
  uint64_t worst_ns = 0;
  bool has_outlier = false;
  struct tp_table table;

  if (!tp_report_table(tp__report_of(of, TO_ANALYSIS_TASKS), "by_type", &table)) return TB_OK;
  size_t latency = tp_table_column(&table, "latency"), type = tp_table_column(&table, "type");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    const Distribution *d = tp_row_distribution(row, latency);
    if (row->other || d == NULL || d->count == 0) continue;
    if (is_outlier(d) || is_found(of, "slow_task", tp_row_text(row, type))) {
      TB_TRY(say_type(summary, of, &table, row));
      has_outlier = true;
    } else if (p99_of(d) >= worst_ns) {
      worst = row;
      worst_ns = p99_of(d);
    }
  }
  return worst == NULL || has_outlier ? TB_OK : say_type(summary, of, &table, worst);
}

/* How long complete tasks of a type take at most; 0: there is none. */
static uint64_t longest_of(const struct tp_table *types, const char *type) {
  size_t name = tp_table_column(types, "type"), latency = tp_table_column(types, "latency");

  for (size_t i = 0; i < types->table->n_rows; i++) {
    const Tracecollect__V1__Row *row = types->table->rows[i];
    const Distribution *d = tp_row_distribution(row, latency);
    if (!row->other && d != NULL && d->count > 0 && strcmp(tp_row_text(row, name), type) == 0)
      return d->max_ns;
  }
  return 0;
}

/* A task that has been open for longer than any of its type took. */
static tb_rc say_open_task(struct tp_summary *summary, const struct tp_summary_of *of) {
  const struct tp__draft draft = {
    .kind = "open_task", .report = "tasks", .more = " --table open_now", .weight = 700
  };
  const Report *r = tp__report_of(of, TO_ANALYSIS_TASKS);
  struct tp_table open, types;
  char age[TP__WORDS], longest[TP__WORDS];

  if (!tp_report_table(r, "open_now", &open) || !tp_report_table(r, "by_type", &types))
    return TB_OK;
  size_t type_at = tp_table_column(&open, "type"), age_at = tp_table_column(&open, "age_ns");
  for (size_t i = 0; i < open.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = open.table->rows[i];
    uint64_t ns = (uint64_t)tp_row_number(row, age_at);
    uint64_t most = longest_of(&types, tp_row_text(row, type_at));
    if (most == 0 || ns < s || ns / 5 < most) continue;
    return tp__say(summary, of, &draft,
                   "Task %.120s has not ended for %s; the slowest that ended took %s",
                   tp_row_text(row, type_at), tp__ns_words(ns, age), tp__ns_words(most, longest));
  }
  return TB_OK;
}

/* ---- the scheduler ---- */

/* The function whose goroutines waited most, the runtime's left out. */
static const char *most_of_entries(const Report *r, const char *distribution) {
  struct tp_table table;
  const char *entry = "";
  uint64_t most = 0;

  if (!tp_report_table(r, "by_entry", &table)) return "";
  size_t name = tp_table_column(&table, "entry"), column = tp_table_column(&table, distribution);
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    const Distribution *d = tp_row_distribution(row, column);
    if (row->other || d == NULL || d->total_ns <= most || tp_is_foreign(tp_row_text(row, name)))
      continue;
    most = d->total_ns;
    entry = tp_row_text(row, name);
  }
  return entry;
}

static tb_rc say_latency(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_SCHED),
               *procs = tp__report_of(of, TO_ANALYSIS_PROCS);
  const Distribution *d = figure_distribution(r, "latency");
  double busy = tp_value_share(tp_report_figure(procs, "busy_share"));
  char p99[TP__WORDS], max[TP__WORDS], share[TP__WORDS], of_busy[80] = "";
  struct tp__draft draft = { .kind = "latency", .report = "sched" };

  if (d == NULL || p99_of(d) < ms || is_found(of, "starved", NULL)) return TB_OK;
  const char *entry = most_of_entries(r, "latency");
  draft.weight = p99_of(d) >= 10 * ms  ? 400 + grade(p99_of(d), 10 * ms) / 2
                 : p99_of(d) >= 2 * ms ? 150 + grade(p99_of(d), 2 * ms) / 2
                                       : 5 + grade(d->max_ns, ms) / 4;
  if (busy >= 0.9)
    snprintf(of_busy, sizeof of_busy, "; the CPUs it may use (Ps) were busy %s of the time",
             tp__share_words(busy, share));
  return tp__say(summary, of, &draft,
                 "Goroutines that could run waited for a P: p99 %s, the longest %s%s%.120s%s",
                 tp__ns_words(p99_of(d), p99), tp__ns_words(d->max_ns, max),
                 entry[0] != '\0' ? ", most of all those of " : "", entry, of_busy);
}

/* The function whose goroutines ran or called the kernel most, the runtime's left out. */
static const char *busiest_entry(const Report *r) {
  struct tp_table table;
  const char *entry = "";
  int64_t most = 0;

  if (!tp_report_table(r, "by_entry", &table)) return "";
  size_t name = tp_table_column(&table, "entry"),
         execution = tp_table_column(&table, "execution_ns");
  size_t call = tp_table_column(&table, "syscall_ns");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    int64_t ns = tp_row_number(row, execution) + tp_row_number(row, call);
    if (row->other || ns <= most || tp_is_foreign(tp_row_text(row, name))) continue;
    most = ns;
    entry = tp_row_text(row, name);
  }
  return entry;
}

/* How busy it was: nothing to worry about, but a program that does nothing is not one that is well. */
static tb_rc say_busy(struct tp_summary *summary, const struct tp_summary_of *of) {
  const struct tp__draft draft = {
    .kind = "busy", .report = "procs", .more = " --table by_busy", .weight = 29
  };
  const char *entry = busiest_entry(tp__report_of(of, TO_ANALYSIS_GOROUTINES));
  int64_t all = 0, idle = 0;
  char share[TP__WORDS];
  struct tp_table table;

  if (!tp_report_table(tp__report_of(of, TO_ANALYSIS_PROCS), "by_busy", &table)) return TB_OK;
  size_t busy = tp_table_column(&table, "busy"), time = tp_table_column(&table, "time_ns");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    all += tp_row_number(row, time);
    if (!row->other && tp_row_number(row, busy) == 0) idle += tp_row_number(row, time);
  }
  if (all == 0) return TB_OK;
  double quiet = (double)idle / (double)all;
  const char *its = entry[0] == '\0' ? "" : "; of its goroutines those of ";
  const char *most = entry[0] == '\0' ? "" : " ran most";
  if (quiet >= 0.5)
    return tp__say(summary, of, &draft, "The program was idle for %s of the time%s%.120s%s",
                   tp__share_words(quiet, share), its, entry, most);
  return tp__say(summary, of, &draft, "The program was busy for %s of the time%s%.120s%s",
                 tp__share_words(1 - quiet, share), its, entry, most);
}

/* The reason of the longest stop; those that tracing makes are left out. */
static const Distribution *longest_stop(const Report *r, const char **out_reason) {
  const Distribution *longest = NULL;
  struct tp_table table;

  if (!tp_report_table(r, "by_reason", &table)) return NULL;
  size_t id = tp_table_column(&table, "id"), reason = tp_table_column(&table, "reason");
  size_t stopped = tp_table_column(&table, "stopped");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    const Distribution *d = tp_row_distribution(row, stopped);
    if (row->other || d == NULL || strncmp(tp_row_text(row, id), "/stw/trace/", 11) == 0) continue;
    if (longest != NULL && d->max_ns <= longest->max_ns) continue;
    longest = d;
    *out_reason = tp_row_text(row, reason);
  }
  return longest;
}

static tb_rc say_stops(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_STW);
  const Distribution *all = figure_distribution(r, "stopped");
  double share = tp_value_share(tp_report_figure(r, "wall_share"));
  char max[TP__WORDS], count[TP__WORDS], part[TP__WORDS];
  struct tp__draft draft = { .kind = "stop", .report = "stw" };
  const char *reason = "";

  if (all == NULL || all->count == 0 || is_found(of, "long_stop", NULL)) return TB_OK;
  const Distribution *longest = longest_stop(r, &reason);
  if (longest == NULL || longest->count == 0) return TB_OK;
  bool stands_out = longest->max_ns >= 10 * ms || (share >= 0.05 && all->count >= 10);
  draft.weight = stands_out              ? 300 + grade(longest->max_ns, 10 * ms) / 2
                 : longest->max_ns >= ms ? 25
                                         : 4;
  return tp__say(summary, of, &draft,
                 "Stop-the-world pauses: the longest %s (%.60s), %s pause%s, %s of the time",
                 tp__ns_words(longest->max_ns, max), reason, tp__count_words(all->count, count),
                 all->count == 1 ? "" : "s", tp__share_words(share, part));
}

/* ---- memory ---- */

static tb_rc say_gc(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_GC);
  const Distribution *cycles = figure_distribution(r, "cycles"),
                     *assist = figure_distribution(r, "assist");
  double share = tp_value_share(tp_report_figure(r, "wall_share"));
  char part[TP__WORDS], count[TP__WORDS], helped[TP__WORDS], of_assists[200] = "";
  struct tp__draft draft = { .kind = "gc", .report = "gc" };

  if (cycles == NULL || cycles->count == 0 || share < 0.1 || is_found(of, "assists", NULL))
    return TB_OK;
  draft.weight = share >= 0.25 && cycles->count >= 3 ? 320 + 50 * share : 70 + 100 * share;
  if (assist != NULL && assist->total_ns > 0) {
    const char *entry = most_of_entries(r, "assist");
    snprintf(of_assists, sizeof of_assists, "; goroutines helped it for %s%s%.100s",
             tp__ns_words(assist->total_ns, helped),
             entry[0] != '\0' ? ", most of all those of " : "", entry);
  }
  return tp__say(summary, of, &draft,
                 "The garbage collector ran for %s of the time, in %s cycle%s%s",
                 tp__share_words(share, part), tp__count_words(cycles->count, count),
                 cycles->count == 1 ? "" : "s", of_assists);
}

static tb_rc say_heap(struct tp_summary *summary, const struct tp_summary_of *of) {
  const struct tp__draft draft = { .kind = "heap", .report = "heap", .weight = 330 };
  const Report *r = tp__report_of(of, TO_ANALYSIS_HEAP);
  uint64_t now = (uint64_t)tp_value_number(tp_report_figure(r, "heap_bytes"));
  struct tp_table table;
  char from[TP__WORDS], to[TP__WORDS];

  if (!tp_report_table(r, "over_time", &table) || table.table->n_rows < 2) return TB_OK;
  uint64_t first =
      (uint64_t)tp_row_number(table.table->rows[0], tp_table_column(&table, "heap_max_bytes"));
  if (now < UINT64_C(64) << 20 || first == 0 || now / 3 < first) return TB_OK;
  return tp__say(summary, of, &draft, "The heap grew from %s to %s", tp__bytes_words(first, from),
                 tp__bytes_words(now, to));
}

/* Goroutines that are made and do not end: many, before it takes a minute to call them a leak. */
static tb_rc say_growth(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_GOROUTINES);
  struct tp__draft draft = { .kind = "growth", .report = "goroutines", .more = " --table by_site" };
  char place[TP__PLACE], alive[TP__WORDS], created[TP__WORDS], ended[TP__WORDS];
  struct tp_table table;

  if (!tp_report_table(r, "by_site", &table) || is_found(of, "leak", NULL)) return TB_OK;
  size_t stack = tp_table_column(&table, "creation_stack"), life = tp_table_column(&table, "life");
  size_t alive_at = tp_table_column(&table, "alive"),
         created_at = tp_table_column(&table, "created");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    const Distribution *d = tp_row_distribution(row, life);
    uint64_t n = (uint64_t)tp_row_number(row, alive_at),
             made = (uint64_t)tp_row_number(row, created_at);
    if (row->other || n < 100 || made < 100 || d == NULL || d->count > made / 2) continue;
    if (!tp__place_words(r, tp_row_value(row, stack), place)) continue;
    draft.place = place;
    draft.weight = 560 + grade(n, 100) / 3;
    TB_TRY(tp__say(summary, of, &draft,
                   "Goroutines pile up: %s that were created at %s are alive; of %s made in this "
                   "time %s ended",
                   tp__count_words(n, alive), place, tp__count_words(made, created),
                   tp__count_words(d->count, ended)));
  }
  return TB_OK;
}

tb_rc tp__summary_figures(struct tp_summary *summary, const struct tp_summary_of *of) {
  TB_TRY(say_tasks(summary, of));
  TB_TRY(say_open_task(summary, of));
  TB_TRY(say_growth(summary, of));
  TB_TRY(say_latency(summary, of));
  TB_TRY(say_busy(summary, of));
  TB_TRY(say_heap(summary, of));
  TB_TRY(say_gc(summary, of));
  return say_stops(summary, of);
}
