/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl report [KIND] [FILE]: analyses a trace file, or gets reports of a collector's live streams. Both fill a set
 * of reports, which is then printed. Without KIND: what stands out in them. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text/nearest.h"
#include "pack/report.h"
#include "pack/trim.h"
#include "tools/tracectl/args/idle.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/profiles/go_profile.h"
#include "tools/tracectl/profiles/pprof.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/remote/streams.h"
#include "tools/tracectl/report/conditions.h"
#include "tools/tracectl/report/kept.h"
#include "tools/tracectl/report/kinds.h"
#include "tools/tracectl/report/live.h"
#include "tools/tracectl/report/output.h"
#include "tools/tracectl/report/summary.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_run.h"
#include "tools/tracectl/url/url.h"

enum {
  CHUNK_BYTES = 16 << 10,
  WATCH_ROWS = 5, /* so that a page fits the screen */
};
#define NOT_GIVEN UINT_MAX

typedef Tracecollect__V1__ReportSchema Schema;
typedef Tracecollect__V1__TableSchema TableSchema;

struct report_options {
  struct tk_report_ask ask;
  struct tk_report_style style;
  const char *pprof, *table; /* NULL: none */
  bool json, csv, schema, watch, no_progress, only_sum, each;
  unsigned window, rows, frames, threads; /* NOT_GIVEN if absent */
  struct tk_client_args client;
  struct tk_selector selector;
  struct tk_texts fail_on;

  /* Resolved from the options once the kinds are known. */
  struct tb_arena arena;
  Schema *schemas[TO_ANALYSIS_KINDS]; /* of the selected kinds */
  size_t kinds;
  struct tr_condition condition[TK_TEXTS_MAX];
  const TableSchema *csv_table;
  struct tk_pprof_ask profile;
};

/* ---- options ---- */

static bool is_all(const char *kind) {
  return strcmp(kind, "all") == 0;
}

/* next: the argument after it; NULL: none. */
static int parse_kind(const char *text, const char *next, struct report_options *o) {
  enum to_analysis_kind kind = TO_ANALYSIS_KINDS;

  if (!is_all(text) && !to_analysis_find(text, &kind)) return tk_kind_unknown(text, next);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    o->ask.kind[k] = is_all(text) || k == kind;
    if (o->ask.kind[k] &&
        tp_take_schema(&o->arena, (enum to_analysis_kind)k, &o->schemas[o->kinds++]) != TB_OK)
      return tk_fail("report", "out of memory");
  }
  return TK_DONE;
}

static int resolve_conditions(struct report_options *o, const char *kind_text) {
  for (size_t i = 0; i < o->fail_on.n; i++) {
    enum to_analysis_kind kind;
    char name[32];
    struct tb_diag diag;
    const char *text = o->fail_on.text[i] + strspn(o->fail_on.text[i], " ");

    tb_diag_clear(&diag);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ". "), text);
    if (to_analysis_find(name, &kind) && !o->ask.kind[kind])
      return tk_usage("report", "--fail-on: \"%s\" is about another report than %s", text,
                      kind_text);
    if (tr_condition_parse(text, o->schemas, o->kinds, &diag, &o->condition[i]) != TB_OK)
      return tk_usage("report", "--fail-on: %s", diag.text);
  }
  return TK_DONE;
}

/* Finds the table of --table in the selected kinds; *out_kinds: number of kinds that have it. */
static const TableSchema *find_table(const struct report_options *o, struct tb_nearest *nearest,
                                     unsigned *out_kinds) {
  const TableSchema *found = NULL;

  *out_kinds = 0;
  for (size_t k = 0; k < o->kinds; k++)
    for (size_t t = 0; t < o->schemas[k]->n_tables; t++) {
      tb_nearest_try(nearest, o->schemas[k]->tables[t]->name);
      if (strcmp(o->schemas[k]->tables[t]->name, o->table) != 0) continue;
      found = o->schemas[k]->tables[t];
      ++*out_kinds;
    }
  return found;
}

static int resolve_table(struct report_options *o, const char *kind_text) {
  struct tb_nearest nearest = { .word = o->table };
  unsigned kinds;

  if (o->table == NULL) {
    if (o->csv && o->kinds > 1)
      return tk_usage("report", "--csv is one table of one report: name its KIND, not all");
    if (o->csv && o->schemas[0]->n_tables == 0)
      return tk_usage("report", "--csv: %s has no table", kind_text);
    if (o->csv) o->csv_table = o->schemas[0]->tables[0];
    return TK_DONE;
  }
  o->csv_table = find_table(o, &nearest, &kinds);
  if (o->csv_table == NULL && nearest.best != NULL)
    return tk_usage("report", "--table: %s has no table \"%s\"; did you mean %s?", kind_text,
                    o->table, nearest.best);
  if (o->csv_table == NULL)
    return tk_usage("report", "--table: %s has no table \"%s\"; --schema lists them", kind_text,
                    o->table);
  if (o->csv && kinds > 1)
    return tk_usage("report", "--csv is one table of one report: several have \"%s\"", o->table);
  return TK_DONE;
}

/* The profile's table is that of --table, or the one that Go's tool shows, or the first whose key has a stack. */
static int resolve_profile(struct report_options *o, const char *kind_text) {
  const struct tk_go_kind *go = o->table == NULL ? tk_go_kind_find(kind_text) : NULL;

  if (o->pprof == NULL) return TK_DONE;
  if (o->kinds > 1) return tk_usage("report", "--pprof is of one report: name its KIND, not all");
  bool has_table = go != NULL && go->table != NULL;
  for (size_t t = 0; t < o->schemas[0]->n_tables && o->profile.table == NULL; t++) {
    const TableSchema *table = o->schemas[0]->tables[t];
    const char *name = o->table != NULL ? o->table : has_table ? go->table : table->name;
    if (strcmp(table->name, name) == 0 && tk_pprof_stack(table) != NULL) o->profile.table = table;
  }
  if (o->profile.table == NULL)
    return tk_usage("report", "--pprof needs a table whose key is a stack: %s%s%s has none",
                    kind_text, o->table != NULL ? "." : "", o->table != NULL ? o->table : "");
  if (has_table) o->profile.go_measure = go->measure;
  o->ask.go_profile = go;
  o->ask.every_stack = true;
  return TK_DONE;
}

/* In a report of every kind, only a question about them computes gc's tables that cost much. */
static bool needs_every_curve(const struct report_options *o) {
  bool asks = o->kinds == 1 || o->table != NULL;

  for (size_t i = 0; i < o->fail_on.n; i++)
    asks |= o->condition[i].path.table != NULL &&
            strcmp(o->condition[i].path.kind, to_analysis_name(TO_ANALYSIS_GC)) == 0;
  return asks && o->ask.kind[TO_ANALYSIS_GC];
}

/* Resolves the options for these kinds of report. next: the argument after the kind; NULL: none. */
static int resolve_options(struct report_options *o, const char *kind_text, const char *next) {
  int code = parse_kind(kind_text, next, o);

  if (code == TK_DONE && o->json && o->csv)
    code = tk_usage("report", "only one of --json and --csv can be given");
  if (code == TK_DONE && o->watch && o->csv)
    code = tk_usage("report", "--csv is written once: leave out --watch");
  if (code == TK_DONE) code = resolve_conditions(o, kind_text);
  if (code == TK_DONE) code = resolve_table(o, kind_text);
  if (code == TK_DONE) code = resolve_profile(o, kind_text);
  bool all_rows = o->style.rows == 0 || o->fail_on.n > 0 || o->pprof != NULL;
  size_t more = o->style.rows > TP_REPORT_ROWS_LIVE ? o->style.rows : TP_REPORT_ROWS_LIVE;
  o->ask.rows_max = all_rows ? SIZE_MAX : more;
  o->ask.every_curve = needs_every_curve(o);
  return code;
}

#define AT(member) offsetof(struct report_options, member)
const struct tk_option tk_report_options[] = {
  TK_OPTION(0, "window", "10s|1m|5m|all", tk_read_word, AT(window),
            "the last part of the trace that is analysed; default: all"),
  TK_OPTION(0, "top", "N", tk_read_number, AT(rows), "rows in each table (default 20, 0: all)"),
  TK_OPTION(0, "table", "NAME", tk_read_text, AT(table), "only this table"),
  TK_OPTION(0, "frames", "N", tk_read_number, AT(frames),
            "lines for a stack (default 4, 0: all frames)"),
  TK_OPTION(0, "threads", "1|2", tk_read_threads, AT(threads), TK_THREADS_ABOUT),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object a line"),
  TK_OPTION(0, "csv", NULL, tk_read_flag, AT(csv),
            "one table as RFC 4180, with a line of names; default: the first table"),
  TK_OPTION(0, "schema", NULL, tk_read_flag, AT(schema),
            "the names of figures, tables and columns, and what they mean; needs no FILE; with "
            "--json for a program"),
  TK_OPTION(0, "pprof", "OUT", tk_read_text, AT(pprof),
            "a table whose key is a stack, as a profile for go tool pprof"),
  TK_OPTION(0, "fail-on", "EXPR", tk_read_texts, AT(fail_on),
            "exit 3 if the condition is met: 'syscall.blocked.p99 > 50ms', 'stw.wall_share >= 1%', "
            "'syscall.blocked_now > 0'"),
  TK_OPTION(0, "idle", "LIST", tk_read_idle, AT(ask.idle), TK_IDLE_ABOUT),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_HELP(NULL, "Without FILE, of a collector's streams:"),
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_OPTION(
      0, "sum", NULL, tk_read_flag, AT(only_sum),
      "with --json or --csv: of a service only the sum of its streams, which is otherwise printed "
      "before them"),
  TK_OPTION(0, "each", NULL, tk_read_flag, AT(each),
            "of a service each stream after the sum, which is otherwise printed alone"),
  TK_OPTION(
      0, "since", "T", tk_read_time, AT(selector.since_wall_ns),
      "of a time in the past, from the reports that the collector keeps: the sum of those that "
      "overlap T to --until; RFC 3339, -7d, now or @UNIX"),
  TK_OPTION(0, "until", "T", tk_read_time, AT(selector.until_wall_ns),
            "the end of that time; default: now"),
  TK_OPTION(0, "watch", NULL, tk_read_flag, AT(watch), "repeat each second, until ^C"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

static bool is_of_past(const struct report_options *o) {
  return o->selector.since_wall_ns != 0 || o->selector.until_wall_ns != 0;
}

static bool is_remote(const struct report_options *o) {
  return tk_selector_names_streams(&o->selector) || tk_client_is_given(&o->client) || o->only_sum ||
         is_of_past(o);
}

/* Copies given numbers; others keep their defaults. */
static void take_numbers(struct report_options *o) {
  if (o->window != NOT_GIVEN) o->ask.window = (enum to_window)o->window;
  if (o->rows != NOT_GIVEN) o->style.rows = o->rows;
  if (o->frames != NOT_GIVEN) o->style.frames = o->frames;
  if (o->threads != NOT_GIVEN) o->ask.threads = o->threads;
  o->ask.progress = !o->no_progress;
}

/* People get the sums of a service; programs each stream, too. */
static bool shows_sums(const struct report_options *o) {
  const struct tk_selector *which = &o->selector;
  bool is_of_service = which->service != NULL && !which->has_stream;

  return is_of_service && (o->only_sum || (!o->each && !o->json && !o->csv));
}

/* Is it every report, as text? */
static bool leads(const struct report_options *o) {
  return o->kinds > 1 && !o->json && !o->csv && o->table == NULL && o->pprof == NULL && !o->watch &&
         !is_of_past(o);
}

/* ---- output ---- */

static int print_reports(const struct report_options *o, struct tk_report_set *set,
                         const char *source) {
  enum tk_report_form form = o->json ? TK_REPORT_JSON : o->csv ? TK_REPORT_CSV : TK_REPORT_TEXT;
  size_t n = set->n;

  if (shows_sums(o) && set->n_merged > 0) set->n = 0;
  tb_rc rc = tk_report_set_print(set, form, o->csv_table, source, &o->style);
  set->n = n;
  return rc == TB_OK ? TK_DONE : tk_fail("report", "%s", tb_rc_text(rc));
}

static int write_profile(const struct report_options *o, struct tk_report_set *set) {
  struct tk_pprof_ask ask = o->profile;
  struct tb_diag diag;
  tb_rc rc = TB_OK;

  tb_diag_clear(&diag);
  if (set->profile != NULL) rc = tk_go_profile_ask(&set->arena, &ask);
  if (rc != TB_OK) return tk_fail("report", "%s", tb_rc_text(rc));
  if (set->profile != NULL)
    rc = tk_pprof_write(o->pprof, &ask, &set->profile, 1, &diag);
  else
    rc = tk_pprof_write(o->pprof, &ask, set->report, set->n, &diag);
  if (rc == TB_IO && strcmp(o->pprof, "-") == 0 && tk_reader_is_gone()) return TK_DONE;
  return rc == TB_OK ? TK_DONE : tk_fail("report", "%s", diag.text);
}

/* Applies --table and --top; reports without the table are removed. Returns how many are left. */
static size_t cut_reports(const struct report_options *o, Tracecollect__V1__StreamReport **report,
                          size_t reports) {
  size_t n = 0;

  for (size_t i = 0; i < reports; i++) {
    if (o->table != NULL && !tk_report_pick(report[i], o->table)) continue;
    tp_report_trim(report[i], o->style.rows);
    report[n++] = report[i];
  }
  return n;
}

/* Profile and conditions use all rows of each stream; then the tables are cut for printing. */
static int output_reports(const struct report_options *o, struct tk_report_set *set,
                          const char *source) {
  bool met[TK_TEXTS_MAX];
  struct tr_number number[TK_TEXTS_MAX];
  int code = TK_DONE;

  if (o->pprof != NULL) code = write_profile(o, set);
  if (code != TK_DONE) return code;
  for (size_t c = 0; c < o->fail_on.n; c++)
    met[c] = tk_condition_is_met(&o->condition[c], set, &number[c]);
  set->n_merged = cut_reports(o, set->merged, set->n_merged);
  set->n = cut_reports(o, set->report, set->n);
  if (o->pprof == NULL || strcmp(o->pprof, "-") != 0) code = print_reports(o, set, source);
  if (code != TK_DONE) return code;
  for (size_t c = 0; c < o->fail_on.n; c++) {
    if (!met[c]) continue;
    tk_condition_tell(&o->condition[c], number[c]);
    code = TK_CONDITION;
  }
  return code;
}

static int report_file(struct report_options *o, const char *path) {
  struct tk_report_set set;
  int code = TK_DONE;

  tk_report_set_init(&set);
  o->ask.findings = leads(o);
  int broken = tk_report_file(path, &o->ask, &set);
  if (leads(o)) code = tk_summary_lead_file(&set, path);
  if (code == TK_DONE) code = output_reports(o, &set, path);
  tk_report_set_fini(&set);
  return broken != TK_DONE ? broken : code;
}

/* ---- a collector's streams ---- */

static int report_none(const struct report_options *o, struct tk_client *client) {
  const char *known = "no stream matches that has a generation in order yet", *text;

  text = tk_remote_no_match(client, &o->selector, known);
  if (text == known && is_of_past(o)) text = tk_report_kept_none(client, &o->selector);
  return tk_fail("report", "%s", text);
}

static int report_once(const struct report_options *o, struct tk_client *client) {
  struct tk_report_set set;
  struct tb_diag diag;
  uint64_t damaged = 0;
  int code;

  tb_diag_clear(&diag);
  tk_report_set_init(&set);
  tb_rc rc = is_of_past(o) ? tk_report_kept(client, &o->ask, &o->selector, &set, &damaged, &diag)
                           : tk_report_live(client, &o->ask, &o->selector, &set, &diag);
  if (rc == TB_OK && leads(o) && set.n > 0) {
    rc = tk_summary_lead(client, &o->selector, o->ask.window, &o->client, false, &diag);
    putchar('\n');
  }
  if (damaged > 0)
    tk_note("report", "%" PRIu64 " stretch%s left out, whose records are damaged", damaged,
            damaged > 1 ? "es" : "");
  if (rc != TB_OK) {
    code = tk_remote_fail("report", rc, &diag);
  } else {
    code = output_reports(o, &set, NULL);
    if (code == TK_DONE && set.n > 0 && shows_sums(o) && !o->json && !o->csv)
      tk_streams_print(client, &o->selector, set.n_merged > 0 ? set.merged[0] : set.report[0]);
    if (code == TK_DONE && set.n == 0) code = report_none(o, client);
  }
  tk_report_set_fini(&set);
  return code;
}

/* Prints one page, in one write so that it does not flicker, or waits for a stream. TB_OK: *out_code is TK_DONE to
 * go on. */
static tb_rc watch_page(const struct report_options *o, struct tk_client *client,
                        struct tb_diag *diag, int *out_code) {
  struct tk_report_set set;

  tk_report_set_init(&set);
  tb_rc rc = tk_report_live(client, &o->ask, &o->selector, &set, diag);
  if (rc == TB_OK) {
    if (isatty(STDOUT_FILENO)) fputs("\033[H\033[J", stdout);
    *out_code = output_reports(o, &set, NULL);
    if (*out_code == TK_DONE && set.n == 0 && !o->json) puts("waiting for a first generation");
    if (!o->json) putchar('\n');
    if (fflush(stdout) != 0) *out_code = TK_FAILED;
  }
  tk_report_set_fini(&set);
  return rc;
}

/* Waits for a collector that restarts; its address may change, if it is read from a ready file. */
static tb_rc reconnect(const struct report_options *o, struct tb_diag *diag,
                       struct tk_client **client) {
  const struct timespec pause = { .tv_nsec = 250000000 };
  tb_rc rc;

  tk_client_close(TB_MOVE(*client));
  do {
    nanosleep(&pause, NULL);
    tb_diag_clear(diag);
    rc = tk_client_open(&o->client, diag, client);
  } while (rc == TB_IO || rc == TB_NOTFOUND);
  return rc;
}

/* Ends on ^C, when a condition is met, or when the reader of the output is gone. */
static int report_watch(const struct report_options *o, struct tk_client **client) {
  static char page[1 << 16];
  const struct timespec second = { .tv_sec = 1 };
  int code = TK_DONE;

  setvbuf(stdout, page, _IOFBF, sizeof(page));
  while (code == TK_DONE) {
    struct tb_diag diag;

    tb_diag_clear(&diag);
    tb_rc rc = watch_page(o, *client, &diag, &code);
    if (rc == TB_IO) {
      tk_fail("report", "%s; waiting for the collector", diag.text);
      rc = reconnect(o, &diag, client);
    } else if (rc == TB_OK) {
      nanosleep(&second, NULL);
    }
    if (rc != TB_OK) return tk_remote_fail("report", rc, &diag);
  }
  return code;
}

static int report_live(struct report_options *o) {
  const struct tk_selector *which = &o->selector;
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (o->only_sum && (which->service == NULL || which->has_stream))
    return tk_usage("report", "--sum needs --service, and no --stream");
  if (o->only_sum && o->each) return tk_usage("report", "--sum and --each contradict each other");
  if (is_of_past(o) && (o->watch || o->window != NOT_GIVEN))
    return tk_usage("report", "--since and --until cannot be combined with --watch or --window");
  bool needs_each = !o->only_sum && (o->fail_on.n > 0 || o->pprof != NULL);
  o->ask.sum = shows_sums(o) && !needs_each ? TK_SUM_ONLY : TK_SUM_FIRST;
  tb_rc rc = tk_selector_check(&o->selector, &diag);
  if (rc == TB_OK) rc = tk_remote_open(&o->client, &o->selector, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("report", rc, &diag);
  if (o->watch && o->rows == NOT_GIVEN) o->style.rows = WATCH_ROWS;
  int code = o->watch ? report_watch(o, &client) : report_once(o, client);
  tk_client_close(client);
  return code;
}

/* ---- without KIND: what stands out ---- */

static const char *needs_kind(const struct report_options *o) {
  return o->csv             ? "--csv"
         : o->table != NULL ? "--table"
         : o->pprof != NULL ? "--pprof"
         : o->schema        ? "--schema"
         : o->watch         ? "--watch"
         : o->only_sum      ? "--sum"
         : is_of_past(o)    ? "--since"
         : o->fail_on.n > 0 ? "--fail-on"
                            : NULL;
}

static int summarize(struct report_options *o, int argc, char **argv) {
  if (needs_kind(o) != NULL)
    return tk_usage("report", "%s needs a KIND, or all, before FILE", needs_kind(o));
  if (argc > 1) return tk_usage("report", "one FILE at a time");
  if (argc == 0 && o->window == NOT_GIVEN) o->ask.window = TO_WINDOW_1MIN; /* what is so now */
  if (argc == 0) return tk_summarize_live(&o->ask, &o->selector, &o->client, o->json);
  if (is_remote(o))
    return tk_usage("report", "FILE cannot be combined with options for a collector's streams");
  return tk_summarize_file(&o->ask, argv[0], o->json);
}

/* ---- the verb ---- */

static int report_schema(const struct report_options *o) {
  tb_rc rc = tk_schemas_print(o->schemas, o->kinds, o->json, &o->style);
  return rc == TB_OK ? TK_DONE : tk_fail("report", "%s", tb_rc_text(rc));
}

static int report(struct report_options *o, int argc, char **argv) {
  int code;

  if (argc == 0 || !tk_is_kind(argv[0], argc > 1 ? argv[1] : NULL)) return summarize(o, argc, argv);
  if (strcmp(argv[0], "why") == 0) return tk_usage("report", "why is a verb: tracectl why [FILE]");
  if ((code = resolve_options(o, argv[0], argc > 1 ? argv[1] : NULL)) != TK_DONE) return code;
  if (argc > 1 && tk_is_second_kind(argv[1]))
    return tk_usage("report", "one KIND at a time, or all: tracectl report all [FILE]");
  if (argc > 2) return tk_usage("report", "one FILE at a time");
  if (o->schema && (argc > 1 || is_remote(o) || o->csv || o->fail_on.n > 0 || o->pprof != NULL))
    return tk_usage("report", "--schema can be combined with a KIND and --json only");
  if (o->schema) return report_schema(o);
  if (argc == 1 && o->ask.idle != NULL)
    return tk_usage("report", "--idle is for a FILE: a collector has its key analysis.idle");
  if (argc == 1) return report_live(o);
  if (is_remote(o))
    return tk_usage("report", "FILE cannot be combined with options for a collector's streams");
  if (o->watch) return tk_usage("report", "--watch is for a collector's streams only");
  return report_file(o, argv[1]);
}

/* `report why` is the verb why. */
static bool find_why(int argc, char **argv, int *out_at) {
  int at = 1;

  while (at < argc && argv[at][0] == '-') at++;
  *out_at = at;
  return at < argc && strcmp(argv[at], "why") == 0;
}

static int report_why(int argc, char **argv, int at) {
  char verb[] = "why";

  memmove(argv + 1, argv, (size_t)at * sizeof *argv);
  argv[1] = verb;
  return tk_cmd_why(argc - 1, argv + 1);
}

int tk_cmd_report(int argc, char **argv) {
  int at;

  if (find_why(argc, argv, &at)) return report_why(argc, argv, at);
  struct report_options o = {
    .ask = { .verb = "report",
             .window = TO_WINDOW_ALL,
             .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT },
    .style = tk_report_style_default(),
    .window = NOT_GIVEN,
    .rows = NOT_GIVEN,
    .frames = NOT_GIVEN,
    .threads = NOT_GIVEN,
  };
  int code = tk_options_read(argc, argv, tk_report_options, &o);

  if (code != TK_DONE) return code;
  tk_inputs_give_tls(&o.client, argv + argc - 1, argc > optind ? 1 : 0);
  take_numbers(&o);
  tb_arena_init(&o.arena, &tk_mem, CHUNK_BYTES);
  code = report(&o, argc - optind, argv + optind);
  tb_arena_fini(&o.arena);
  return code;
}
