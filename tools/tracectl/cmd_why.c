/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl why: why one task, region or wait took so long; in a file, or in what a collector has of one stream. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "online/why/schema.h"
#include "online/window/window.h"
#include "pack/report.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/fetch/traces.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/report/output.h"
#include "tools/tracectl/report/text.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"
#include "tools/tracectl/why/slowest.h"
#include "tools/tracectl/why/why.h"

enum { CHUNK_BYTES = 16 << 10 };
#define NOT_GIVEN UINT_MAX

struct why_options {
  struct tk_why_ask ask;
  struct tk_at at;
  struct tk_report_style style;
  bool schema, no_progress;
  unsigned window; /* NOT_GIVEN if absent */
  struct tk_client_args client;
  struct tk_selector selector;
};

static tb_rc read_task(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  struct to_why_ask *why = field;
  char *end;

  errno = 0;
  why->has_task = true;
  why->task = strtoull(value, &end, 10);
  if (value[0] >= '0' && value[0] <= '9' && *end == 0 && errno == 0) return TB_OK;
  return tk_option_needs(option, "the number of a task", value, diag);
}

#define AT(member) offsetof(struct why_options, member)
const struct tk_option tk_why_options[] = {
  TK_HELP(NULL, "One of:"),
  TK_OPTION(0, "slow", "TYPE", tk_read_text, AT(ask.of.slow),
            "the slowest complete task or region of this type"),
  TK_OPTION(0, "task", "ID", read_task, AT(ask.of),
            "this task, from its begin to its end, from the goroutine that ended it back"),
  TK_OPTION(0, "goroutine", "N", tk_read_count, AT(ask.of.goroutine),
            "this goroutine at --at: its innermost region then, else the shortest task that it "
            "began, else what it did then: a wait, a system call, a run"),
  TK_OPTION(0, "at", "T", tk_read_at, AT(at),
            "a time: nanoseconds as cat and query print them, RFC 3339, -5m, now or @UNIX"),
  TK_HELP(NULL, "And:"),
  TK_OPTION(0, "top", "N", tk_read_number, AT(ask.rows), "rows in each table (default 20, 0: all)"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(ask.json), "one JSON object"),
  TK_OPTION(0, "schema", NULL, tk_read_flag, AT(schema),
            "the names of figures, tables and columns, and what they mean; needs no FILE; with "
            "--json for a program"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_HELP(NULL, "Without FILE, of one stream of a collector; of several the one with the "
                "slowest, live ones first, or without --slow the live one, else the newest:"),
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_OPTION(0, "window", "10s|1m|5m|all", tk_read_word, AT(window),
            "the last part of what it has, whole generations after the last hole; default: 1m"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

/* ---- a collector's stream ---- */

/* The default is the last minute: a longer task is incomplete in it. */
static enum to_window window_of(const struct why_options *o) {
  return o->window != NOT_GIVEN ? (enum to_window)o->window : TO_WINDOW_1MIN;
}

/* Fetches, of several streams, the one with the slowest task. */
static tb_rc fetch(struct why_options *o, struct tk_client *client, struct tb_diag *diag,
                   struct tk_fetched_traces *out) {
  o->selector.last_ns = (uint64_t)to_window_length(window_of(o));
  if (o->ask.of.slow != NULL)
    TB_TRY(tk_why_slowest(client, "why", o->ask.of.slow, window_of(o), &o->selector, diag));
  return tk_fetch_last(client, "why", &o->selector, !o->no_progress, diag, out);
}

/* Fetches the traces from the collector and explains them like a file. */
static int why_live(struct why_options *o) {
  struct tk_client *client;
  struct tk_fetched_traces traces;
  struct tb_diag diag;
  char name[220];

  tb_diag_clear(&diag);
  tb_rc rc = tk_selector_check(&o->selector, &diag);
  if (rc == TB_OK) rc = tk_remote_open(&o->client, &o->selector, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("why", rc, &diag);
  rc = fetch(o, client, &diag, &traces);
  tk_client_close(client);
  if (rc != TB_OK) return tk_remote_fail("why", rc, &diag);
  const struct tk_fetched *last = &traces.trace[traces.n - 1];
  snprintf(name, sizeof name, "%s, generations %" PRIu64 " to %" PRIu64, last->stream,
           last->first_gen, last->last_gen);
  o->ask.place = (struct tk_place){ .path = last->path, .name = name, .verb = "why" };
  int code = tk_why_run(&o->ask);
  tk_fetched_fini(&traces);
  return code;
}

/* ---- the verb ---- */

static bool is_remote(const struct why_options *o) {
  return tk_selector_names_streams(&o->selector) || tk_client_is_given(&o->client);
}

static unsigned count_ways(const struct why_options *o) {
  const struct to_why_ask *of = &o->ask.of;

  return (unsigned)of->has_task + (of->slow != NULL) + (of->goroutine != 0);
}

static int print_schema(const struct why_options *o) {
  Tracecollect__V1__ReportSchema *schema;
  struct tb_arena arena;

  tb_arena_init(&arena, &tk_mem, CHUNK_BYTES);
  tb_rc rc = tp_take_schema_of(&arena, "why", TO_WHY_ABOUT, &to_why_schema, &schema);
  if (rc == TB_OK) rc = tk_schemas_print(&schema, 1, o->ask.json, &o->style);
  tb_arena_fini(&arena);
  return rc == TB_OK ? TK_DONE : tk_fail("why", "%s", tb_rc_text(rc));
}

static int check(const struct why_options *o, int argc, char **argv) {
  if (argc > 1 || (argc == 1 && strcmp(argv[0], "-") == 0))
    return tk_usage("why", "one FILE is needed, and no pipe: it is read more than once");
  if (count_ways(o) != 1 || (o->ask.of.goroutine != 0) != o->at.is_given)
    return tk_usage("why", "of what? One of --slow TYPE, --task ID, --goroutine N --at T");
  if (argc == 1 && is_remote(o))
    return tk_usage("why", "FILE cannot be combined with options for a collector's stream");
  if (argc == 1 && o->window != NOT_GIVEN)
    return tk_usage("why", "--window is for a collector's stream only");
  return TK_DONE;
}

static int why(struct why_options *o, int argc, char **argv) {
  struct to_why_ask *of = &o->ask.of;
  int code = check(o, argc, argv);

  if (code != TK_DONE) return code;
  of->has_at = o->at.is_given;
  of->at_is_wall = o->at.is_wall;
  of->at = o->at.at;
  of->at_wall_ns = o->at.wall_ns;
  if (argc == 0) return why_live(o);
  o->ask.place = (struct tk_place){ .path = argv[0], .name = argv[0], .verb = "why" };
  return tk_why_run(&o->ask);
}

int tk_cmd_why(int argc, char **argv) {
  struct why_options o = { .style = tk_report_style_default(), .window = NOT_GIVEN };

  o.ask.rows = o.style.rows;
  int code = tk_options_read(argc, argv, tk_why_options, &o);
  if (code != TK_DONE) return code;
  tk_inputs_give_tls(&o.client, argv + optind, argc - optind);
  if (!o.schema) return why(&o, argc - optind, argv + optind);
  if (argc > optind || count_ways(&o) > 0 || is_remote(&o))
    return tk_usage("why", "--schema can be combined with --json only");
  return print_schema(&o);
}
