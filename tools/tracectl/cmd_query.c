/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl query [FILE... | SELECTOR...] 'SQL': traces as tables. */
#include <stdio.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/query/saved.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/term/tracectl.h"

enum { OPT_JSON = 1, OPT_CSV, OPT_LIST, OPT_SAVED, OPT_PPROF };

struct query_options {
  struct tk_inputs inputs;
  bool json, csv, list;
  const char *saved, *sql, *pprof; /* NULL: none */
  char **files;
  int n_files;
};

static int take_option(struct query_options *o, int option, const char *value) {
  switch (option) {
  case OPT_JSON: o->json = true; return TK_DONE;
  case OPT_CSV: o->csv = true; return TK_DONE;
  case OPT_LIST: o->list = true; return TK_DONE;
  case OPT_SAVED: o->saved = value; return TK_DONE;
  case OPT_PPROF: o->pprof = value; return TK_DONE;
  default: return tk_inputs_option(&o->inputs, option, value);
  }
}

/* The last argument is the statement, if none is named. */
static int take_arguments(struct query_options *o, int argc, char **argv) {
  const struct tk_saved *saved = o->saved == NULL ? NULL : tk_saved_find(o->saved);

  if (o->json + o->csv + (o->pprof != NULL) > 1)
    return tk_usage("query", "one of --json, --csv and --pprof");
  if (o->saved != NULL && saved == NULL) return TK_USAGE;
  if (saved == NULL && argc == 0)
    return tk_usage("query",
                    "FILE and one statement are wanted; --list shows those that have a name");
  o->sql = saved != NULL ? saved->sql : argv[argc - 1];
  o->files = argv;
  o->n_files = saved != NULL ? argc : argc - 1;
  return TK_DONE;
}

static int query(struct query_options *o) {
  enum tk_rows_format format = o->json ? TK_ROWS_JSON : o->csv ? TK_ROWS_CSV : TK_ROWS_TEXT;
  struct tk_traces traces;

  int code = tk_inputs_open(&o->inputs, o->files, o->n_files);
  if (code == TK_DONE && !tk_traces_open(&traces, o->inputs.place, o->inputs.n))
    code = tk_fail("query", "out of memory");
  if (code == TK_DONE) {
    code = o->pprof != NULL ? tk_sql_profile(&traces, o->sql, o->pprof)
                            : tk_sql_run(&traces, o->sql, format, stdout);
    tk_traces_close(&traces);
  }
  tk_inputs_close(&o->inputs);
  return code;
}

int tk_cmd_query(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, OPT_JSON },
    { "csv", no_argument, NULL, OPT_CSV },
    { "list", no_argument, NULL, OPT_LIST },
    { "saved", required_argument, NULL, OPT_SAVED },
    { "pprof", required_argument, NULL, OPT_PPROF },
    TK_INPUTS_OPTIONS,
    { 0 },
  };
  struct query_options o = { .inputs = { .verb = "query" } };
  int code;

  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;)
    if ((code = take_option(&o, c, optarg)) != TK_DONE) return code;
  if (o.list && optind == argc && !o.csv && o.pprof == NULL) {
    tk_saved_list(o.json);
    return TK_DONE;
  }
  if (o.list) return tk_usage("query", "--list goes alone, or with --json");
  code = take_arguments(&o, argc - optind, argv + optind);
  return code == TK_DONE ? query(&o) : code;
}
