/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl convert --to FORMAT [FILE... | SELECTOR...] -o OUT: traces for other tools. csv, json and sqlite are tables of
 * query, others a timeline. */
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/convert/convert.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/names/views.h"
#include "tools/tracectl/query/export.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"

/* In the order of the words of --to; timelines first. */
#define FORMS "perfetto|chrome|collapsed|otlp|otlp-metrics|json|csv|sqlite"
enum form { PERFETTO, CHROME, COLLAPSED, OTLP, OTLP_METRICS, JSON, CSV, SQLITE, NOT_GIVEN };
static const struct tk_format *const timelines[] = { &tk_format_perfetto, &tk_format_chrome,
                                                     &tk_format_collapsed, &tk_format_otlp,
                                                     &tk_format_otlp_metrics };

struct convert_options {
  struct tk_inputs inputs;
  const char *path, *table, *columns;
  unsigned form, stacks; /* NOT_GIVEN if absent */
  struct tk_convert_ask ask;
};

static tb_rc read_form(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  if (strcmp(value, "pprof") != 0) return tk_read_word(option, value, field, diag);
  return tb_fail(diag, TB_BROKEN,
                 "--to: profiles are of a report: 'tracectl report KIND FILE "
                 "--pprof OUT', or of rows: 'tracectl query --pprof OUT'");
}

/* --otlp URL means --to otlp or otlp-metrics, sent to a URL. */
static int check_url(struct convert_options *o) {
  const char *url = o->ask.options.url;

  if (url == NULL) return TK_DONE;
  if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
    return tk_usage("convert", "--otlp needs a URL (https://... or http://...), not '%s'", url);
  if (o->path != NULL) return tk_usage("convert", "--otlp cannot be combined with -o");
  if (o->form == NOT_GIVEN) o->form = OTLP;
  if (o->form != OTLP && o->form != OTLP_METRICS)
    return tk_usage("convert", "--otlp sends otlp or otlp-metrics only");
  return TK_DONE;
}

static int check_options(struct convert_options *o) {
  int code = check_url(o);

  if (code != TK_DONE) return code;
  if (o->form == NOT_GIVEN) return tk_usage("convert", "--to is required, one of " FORMS);
  if (o->path == NULL && o->ask.options.url == NULL)
    return tk_usage("convert", "-o OUT is required; - is standard output");
  if (o->table != NULL && o->form != JSON && o->form != CSV)
    return tk_usage("convert", "--table is for json and csv only");
  if (o->columns != NULL && o->form != JSON && o->form != CSV)
    return tk_usage("convert", "--columns is for json and csv only");
  if (o->stacks != NOT_GIVEN && o->form != COLLAPSED)
    return tk_usage("convert", "--of is for collapsed only");
  if (o->form == SQLITE && strcmp(o->path, "-") == 0)
    return tk_usage("convert", "sqlite needs a file: -o OUT");
  if (o->path != NULL && tk_out_is_trace(o->path))
    return tk_usage("convert", "-o: '%s' is a Go trace, which would be overwritten", o->path);
  if (o->stacks != NOT_GIVEN) o->ask.options.stacks = (enum tk_stacks_of)o->stacks;
  return TK_DONE;
}

/* Is the name among those that at() has? The nearest one is remembered. */
static bool finds(const char *(*at)(size_t i), struct tb_nearest *nearest) {
  const char *name;

  for (size_t i = 0; (name = at(i)) != NULL; i++) {
    if (strcmp(name, nearest->word) == 0) return true;
    tb_nearest_try(nearest, name);
  }
  return false;
}

static int check_table(const char *table, bool *out_is_view) {
  struct tb_nearest nearest = { .word = table };

  *out_is_view = !finds(tk_tables_name, &nearest);
  if (!*out_is_view || finds(tk_views_name, &nearest)) return TK_DONE;
  if (nearest.best == NULL)
    return tk_usage("convert", "--table: no table '%s'; 'tracectl query --schema' lists them",
                    table);
  return tk_usage("convert", "--table: no table '%s'; did you mean '%s'?", table, nearest.best);
}

static int check_columns(const struct tk_export *ask, bool is_view) {
  const char *name;
  size_t len;

  if (is_view && ask->columns != NULL)
    return tk_usage("convert",
                    "--columns: %s is a view: 'tracectl query --csv' chooses its columns",
                    ask->table);
  if (is_view) return TK_DONE;
  enum tk_export_fault fault = tk_export_check(ask, &name, &len);
  if (fault == TK_EXPORT_NO_COLUMN)
    return tk_usage("convert",
                    "--columns: %s has no column '%.*s'; 'tracectl query --schema %s' "
                    "lists them",
                    ask->table, (int)len, name, ask->table);
  if (fault == TK_EXPORT_TWICE)
    return tk_usage("convert", "--columns: '%.*s' is given twice", (int)len, name);
  return TK_DONE;
}

static int write_view(struct tk_traces *traces, const struct tk_export *ask, FILE *file) {
  char sql[80];

  snprintf(sql, sizeof sql, "SELECT * FROM %s", ask->table);
  return tk_sql_run(traces, sql, ask->format == TK_RECORD_CSV ? TK_ROWS_CSV : TK_ROWS_JSON, file);
}

static int write_rows(const struct convert_options *o, struct tk_traces *traces) {
  const struct tk_export ask = { .verb = "convert",
                                 .table = o->table != NULL ? o->table : "spans",
                                 .columns = o->columns,
                                 .format = o->form == CSV ? TK_RECORD_CSV : TK_RECORD_JSON };
  struct tk_out_set *files = NULL;
  struct tb_diag diag;
  bool is_view;
  FILE *file;

  int code = check_table(ask.table, &is_view);
  if (code == TK_DONE) code = check_columns(&ask, is_view);
  if (code != TK_DONE) return code;
  tb_diag_clear(&diag);
  tb_rc rc = tk_out_new(&diag, &files);
  if (rc == TB_OK) rc = tk_out_begin(files, o->path, &diag, &file);
  code = TK_FAILED;
  if (rc == TB_OK) code = is_view ? write_view(traces, &ask, file) : tk_export(&ask, traces, file);
  if (rc == TB_OK && code != TK_USAGE) rc = tk_out_publish(files, &diag);
  tk_out_free(files);
  if (rc == TB_IO && strcmp(o->path, "-") == 0 && tk_reader_is_gone()) return TK_DONE;
  return rc == TB_OK ? code : tk_fail("convert", "%s", diag.text);
}

static int write_tables(struct convert_options *o) {
  struct tk_traces traces;

  if (!tk_traces_open(&traces, o->inputs.place, o->inputs.n))
    return tk_fail("convert", "out of memory");
  int code = o->form == SQLITE ? tk_sql_store(&traces, o->path) : write_rows(o, &traces);
  tk_traces_close(&traces);
  return code;
}

static int convert(struct convert_options *o, char **files, int n_files) {
  int code = tk_inputs_open(&o->inputs, files, n_files);

  if (code == TK_DONE && o->form > OTLP_METRICS) {
    code = write_tables(o);
  } else if (code == TK_DONE) {
    o->ask.format = timelines[o->form];
    o->ask.place = o->inputs.place;
    o->ask.n = o->inputs.n;
    o->ask.is_remote = o->inputs.is_remote;
    o->ask.path = o->path;
    code = tk_convert(&o->ask);
  }
  tk_inputs_close(&o->inputs);
  return code;
}

#define AT(member) offsetof(struct convert_options, member)
const struct tk_option tk_convert_options[] = {
  TK_OPTION(0, "to", FORMS, read_form, AT(form),
            "perfetto, chrome: open it in ui.perfetto.dev; collapsed: stacks for flame graphs; "
            "otlp, otlp-metrics: OpenTelemetry's spans, and reports; json, csv: rows of a table; "
            "sqlite: all tables"),
  TK_OPTION('o', "output", "OUT", tk_read_text, AT(path), "the file; - is standard output"),
  TK_OPTION(0, "table", "NAME", tk_read_text, AT(table),
            "for json and csv: a table of query; default: spans"),
  TK_OPTION(0, "columns", "LIST", tk_read_text, AT(columns),
            "only these of its columns, in this order: kind,state,duration_ns"),
  TK_OPTION(0, "otlp", "URL", tk_read_text, AT(ask.options.url),
            "send otlp to URL/v1/traces, otlp-metrics to URL/v1/metrics; headers: "
            "OTEL_EXPORTER_OTLP_HEADERS"),
  TK_OPTION(0, "of", "samples|waiting|runnable|syscall", tk_read_word, AT(stacks),
            "for collapsed: samples (default), or the time spent waiting, runnable, in a system "
            "call"),
  TK_GROUP(tk_inputs_options, AT(inputs)),
  { 0 },
};

int tk_cmd_convert(int argc, char **argv) {
  struct convert_options o = { .inputs = { .verb = "convert" },
                               .form = NOT_GIVEN,
                               .stacks = NOT_GIVEN };
  int code = tk_options_read(argc, argv, tk_convert_options, &o);

  if (code == TK_DONE) code = check_options(&o);
  return code == TK_DONE ? convert(&o, argv + optind, argc - optind) : code;
}
