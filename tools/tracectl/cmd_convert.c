/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl convert --to FORMAT [FILE... | SELECTOR...] -o OUT: traces for other tools. csv, json and sqlite are tables of
 * query, the others one timeline. */
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/convert/convert.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/query/export.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"

enum { OPT_TABLE = 1, OPT_OF, OPT_OTLP };

enum form { FORM_TIMELINE, FORM_JSON, FORM_CSV, FORM_SQLITE };

struct convert_options {
  struct tk_inputs inputs;
  const char *to, *path, *table, *of;
  enum form form;
  struct tk_convert_ask ask;
};

static int take_option(struct convert_options *o, int option, const char *value) {
  switch (option) {
  case 'o': o->path = value; return TK_DONE;
  case TK_OPT_TO: /* of a format, and not of a time: --until is that */
    o->to = value;
    return TK_DONE;
  case OPT_TABLE: o->table = value; return TK_DONE;
  case OPT_OF: o->of = value; return TK_DONE;
  case OPT_OTLP: o->ask.options.url = value; return TK_DONE;
  default: return tk_inputs_option(&o->inputs, option, value);
  }
}

static int find_form(struct convert_options *o) {
  static const char *const forms[] = {
    [FORM_JSON] = "json", [FORM_CSV] = "csv", [FORM_SQLITE] = "sqlite"
  };

  if (o->to == NULL)
    return tk_usage("convert", "--to FORMAT is wanted: perfetto, chrome, collapsed, otlp, "
                               "otlp-metrics, json, csv, sqlite");
  for (unsigned i = FORM_JSON; i <= FORM_SQLITE; i++)
    if (strcmp(o->to, forms[i]) == 0) o->form = (enum form)i;
  o->ask.format = tk_format_find(o->to);
  if (o->form == FORM_TIMELINE && o->ask.format == NULL)
    return tk_usage("convert",
                    "--to: no format \"%s\"; there are perfetto, chrome, collapsed, otlp, "
                    "otlp-metrics, json, csv, sqlite",
                    o->to);
  return TK_DONE;
}

/* --otlp URL is --to otlp, or otlp-metrics, with another place. */
static int check_url(struct convert_options *o) {
  const char *url = o->ask.options.url;

  if (url == NULL) return TK_DONE;
  if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
    return tk_usage("convert", "--otlp: \"%s\" is no URL: https://... or http://...", url);
  if (o->path != NULL) return tk_usage("convert", "--otlp sends: -o has no place beside it");
  if (o->to == NULL) o->to = "otlp";
  if (strcmp(o->to, "otlp") != 0 && strcmp(o->to, "otlp-metrics") != 0)
    return tk_usage("convert", "--otlp sends otlp or otlp-metrics, not %s", o->to);
  return TK_DONE;
}

static int check_options(struct convert_options *o) {
  int code = check_url(o);

  if (code == TK_DONE) code = find_form(o);
  if (code != TK_DONE) return code;
  if (o->path == NULL && o->ask.options.url == NULL)
    return tk_usage("convert", "-o OUT is wanted; - is standard output");
  if (o->table != NULL && o->form != FORM_JSON && o->form != FORM_CSV)
    return tk_usage("convert", "--table is for json and csv");
  if (o->of != NULL && o->ask.format != &tk_format_collapsed)
    return tk_usage("convert", "--of is for collapsed");
  if (o->of != NULL && !tk_stacks_of_find(o->of, &o->ask.options.stacks))
    return tk_usage("convert", "--of: \"%s\" is none of samples, waiting, runnable, syscall",
                    o->of);
  if (o->form == FORM_SQLITE && strcmp(o->path, "-") == 0)
    return tk_usage("convert", "a database is a file: -o OUT");
  return TK_DONE;
}

static int write_rows(const struct convert_options *o, struct tk_traces *traces) {
  const char *table = o->table != NULL ? o->table : "spans";
  struct tk_out_set *files = NULL;
  struct tb_diag diag;
  FILE *file;
  char sql[80];

  if (strspn(table, "abcdefghijklmnopqrstuvwxyz") != strlen(table) || strlen(table) > 20)
    return tk_usage("convert", "--table: no such table \"%s\"", table);
  snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
  tb_diag_clear(&diag);
  tb_rc rc = tk_out_new(&diag, &files);
  if (rc == TB_OK) rc = tk_out_begin(files, o->path, &diag, &file);
  int code = TK_FAILED;
  if (rc == TB_OK)
    code = o->form == FORM_CSV ? tk_table_csv(traces, table, file)
                               : tk_sql_run(traces, sql, TK_ROWS_JSON, file);
  if (rc == TB_OK && code != TK_USAGE) rc = tk_out_publish(files, &diag);
  tk_out_free(files);
  if (rc == TB_IO && strcmp(o->path, "-") == 0 && tk_reader_is_gone()) return TK_DONE;
  return rc == TB_OK ? code : tk_fail("convert", "%s", diag.text);
}

static int write_tables(struct convert_options *o) {
  struct tk_traces traces;

  if (!tk_traces_open(&traces, o->inputs.place, o->inputs.n))
    return tk_fail("convert", "out of memory");
  int code = o->form == FORM_SQLITE ? tk_sql_store(&traces, o->path) : write_rows(o, &traces);
  tk_traces_close(&traces);
  return code;
}

static int convert(struct convert_options *o, char **files, int n_files) {
  int code = tk_inputs_open(&o->inputs, files, n_files);

  if (code == TK_DONE && o->form != FORM_TIMELINE) {
    code = write_tables(o);
  } else if (code == TK_DONE) {
    o->ask.place = o->inputs.place;
    o->ask.n = o->inputs.n;
    o->ask.is_remote = o->inputs.is_remote;
    o->ask.path = o->path;
    code = tk_convert(&o->ask);
  }
  tk_inputs_close(&o->inputs);
  return code;
}

int tk_cmd_convert(int argc, char **argv) {
  static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "table", required_argument, NULL, OPT_TABLE },
    { "of", required_argument, NULL, OPT_OF },
    { "otlp", required_argument, NULL, OPT_OTLP },
    TK_INPUTS_OPTIONS,
    { 0 },
  };
  struct convert_options o = { .inputs = { .verb = "convert" } };
  int code;

  for (int c; (c = tk_option_next(argc, argv, "o:", options)) != -1;)
    if ((code = take_option(&o, c, optarg)) != TK_DONE) return code;
  code = check_options(&o);
  return code == TK_DONE ? convert(&o, argv + optind, argc - optind) : code;
}
