/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl query [FILE... | SELECTOR...] 'SQL': traces as tables. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/args/idle.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/names/names.h"
#include "tools/tracectl/names/views.h"
#include "tools/tracectl/query/saved.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/input.h"
#include "tools/tracectl/url/url.h"

struct query_options {
  struct tk_inputs inputs;
  bool json, csv, list, schema;
  const char *saved, *sql, *pprof, *idle; /* NULL: none */
  char **files;
  int n_files;
};

#define AT(member) offsetof(struct query_options, member)
const struct tk_option tk_query_options[] = {
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object a row"),
  TK_OPTION(0, "csv", NULL, tk_read_flag, AT(csv), "RFC 4180, with a line of names"),
  TK_OPTION(0, "pprof", "OUT", tk_read_text, AT(pprof),
            "a profile for go tool pprof of the rows: stack, names on top of it, values"),
  TK_OPTION(0, "saved", "NAME", tk_read_text, AT(saved),
            "a query that has a name, instead of a statement"),
  TK_OPTION(0, "list", NULL, tk_read_flag, AT(list),
            "list those queries; with --json also their statements"),
  TK_OPTION(
      0, "schema", NULL, tk_read_flag, AT(schema),
      "show the tables with their columns; or the columns of one TABLE, with types and values"),
  TK_OPTION(0, "idle", "LIST", tk_read_idle, AT(idle), TK_IDLE_ABOUT),
  TK_GROUP(tk_inputs_options, AT(inputs)),
  { 0 },
};

/* Returns the index of the only argument that begins as a statement and is no file; -1: there is none; argc: there are several. */
static int find_statement(int argc, char **argv) {
  int found = -1;

  for (int i = 0; i < argc; i++) {
    if (!tk_names_begins_query(argv[i]) || access(argv[i], F_OK) == 0) continue;
    if (found >= 0) return argc;
    found = i;
  }
  return found;
}

/* The statement is the last argument, or the only one that begins as one. What is before it is moved up. */
static int take_statement(struct query_options *o, int argc, char **argv) {
  int at = find_statement(argc, argv);

  if (argc == 0)
    return tk_usage("query",
                    "FILE and one statement are required; --list shows those that have a name");
  if (at < 0 && access(argv[argc - 1], F_OK) == 0)
    return tk_usage("query",
                    "a statement is required after '%s': 'SELECT ...'; --list shows those "
                    "that have a name",
                    argv[argc - 1]);
  if (at == argc) return tk_usage("query", "one statement at a time, in quotes; FILEs before it");
  if (at < 0) at = argc - 1;
  o->sql = argv[at];
  memmove(argv + at, argv + at + 1, (size_t)(argc - 1 - at) * sizeof *argv);
  o->files = argv;
  o->n_files = argc - 1;
  return TK_DONE;
}

static int take_arguments(struct query_options *o, int argc, char **argv) {
  const struct tk_saved *saved = o->saved == NULL ? NULL : tk_saved_find(o->saved);

  if (o->json + o->csv + (o->pprof != NULL) > 1)
    return tk_usage("query", "only one of --json, --csv and --pprof can be given");
  if (o->pprof != NULL && tk_out_is_trace(o->pprof))
    return tk_usage("query", "--pprof: '%s' is a Go trace, which would be overwritten", o->pprof);
  if (o->saved != NULL && saved == NULL) return TK_USAGE;
  if (saved == NULL) return take_statement(o, argc, argv);
  o->sql = saved->sql;
  o->files = argv;
  o->n_files = argc;
  return TK_DONE;
}

static int run(const struct query_options *o, const Tracecollect__V1__FindingsReply *findings) {
  enum tk_rows_format format = o->json ? TK_ROWS_JSON : o->csv ? TK_ROWS_CSV : TK_ROWS_TEXT;
  struct tk_traces traces;

  if (!tk_traces_open(&traces, o->inputs.place, o->inputs.n))
    return tk_fail("query", "out of memory");
  traces.findings = findings;
  int code = o->pprof != NULL ? tk_sql_profile(&traces, o->sql, o->pprof)
                              : tk_sql_run(&traces, o->sql, format, stdout);
  tk_traces_close(&traces);
  return code;
}

/* Asks the collector for its findings, which live until the client is closed. */
static int run_with_findings(const struct query_options *o) {
  Tracecollect__V1__FindingsRequest request = TRACECOLLECT__V1__FINDINGS_REQUEST__INIT;
  const Tracecollect__V1__FindingsReply *reply;
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (o->inputs.selector.service != NULL)
    request.service = (char *)(uintptr_t)o->inputs.selector.service;
  request.since_ns = o->inputs.selector.since_wall_ns;
  tb_rc rc = tk_client_open(&o->inputs.client, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("query", rc, &diag);
  rc = tk_client_ask(client, TP_ROUTE_FINDINGS, "", &request.base, &diag, &reply);
  int code = rc == TB_OK ? run(o, reply) : tk_remote_fail("query", rc, &diag);
  tk_client_close(client);
  return code;
}

/* Is a table of traces named? Without one, none is fetched. */
static bool names_traces(const char *sql) {
  for (size_t i = 0; tk_tables_name(i) != NULL; i++)
    if (strcasestr(sql, tk_tables_name(i)) != NULL) return true;
  for (size_t i = 0; tk_views_name(i) != NULL; i++)
    if (strcasestr(sql, tk_views_name(i)) != NULL) return true;
  return false;
}

/* A statement that reads no table opens no file. */
static int check_files(const struct query_options *o) {
  struct tk_input *in;

  for (int i = 0; i < o->n_files; i++) {
    if (tk_url_is(o->files[i]) || access(o->files[i], F_OK) == 0) continue;
    if (!tk_input_open("query", o->files[i], &in)) return TK_FAILED;
    tk_input_close(in);
  }
  return TK_DONE;
}

static int query(struct query_options *o) {
  bool wants_findings = strcasestr(o->sql, "findings") != NULL;

  if (wants_findings && o->n_files > 0)
    return tk_usage("query", "findings are a collector's, not a trace's: --service S");
  if (wants_findings && !names_traces(o->sql)) return run_with_findings(o);
  int code = tk_inputs_open(&o->inputs, o->files, o->n_files);
  if (code == TK_DONE) code = check_files(o);
  for (size_t i = 0; i < o->inputs.n; i++) o->inputs.place[i].idle = o->idle;
  if (code == TK_DONE) code = wants_findings ? run_with_findings(o) : run(o, NULL);
  tk_inputs_close(&o->inputs);
  return code;
}

int tk_cmd_query(int argc, char **argv) {
  struct query_options o = { .inputs = { .verb = "query" } };
  int code = tk_options_read(argc, argv, tk_query_options, &o);

  if (code != TK_DONE) return code;
  if (o.list && optind == argc && !o.csv && o.pprof == NULL) {
    tk_saved_list(o.json);
    return TK_DONE;
  }
  if (o.schema && argc - optind > 1)
    return tk_usage("query", "--schema takes one table at most, and no FILE: query --schema spans");
  if (o.schema && (o.json || o.csv || o.list || o.pprof != NULL || o.saved != NULL))
    return tk_usage("query",
                    "--schema is text: it cannot be combined with another form, or a query");
  if (o.schema) return tk_sql_schema(argv[optind]);
  if (o.list) return tk_usage("query", "--list can be combined with --json only");
  code = take_arguments(&o, argc - optind, argv + optind);
  return code == TK_DONE ? query(&o) : code;
}
