/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl query [FILE... | SELECTOR...] 'SQL': traces as tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/fetch/traces.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/query/saved.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_range.h"

enum { OPT_JSON = 1, OPT_CSV, OPT_LIST, OPT_SAVED, OPT_ALL, OPT_NO_PROGRESS };

struct querying {
  bool json, csv, list, all, no_progress;
  bool is_remote; /* an option was given that chooses a collector's streams */
  const char *saved, *sql;
  struct tk_client_args client;
  struct tk_selector selector;
  char **files;
  int n_files;
  struct tk_traces traces;
};

/* ---- traces ---- */

static bool take_room(struct querying *q, size_t n) {
  q->traces.trace = calloc(n, sizeof *q->traces.trace);
  return q->traces.trace != NULL || tk_fail("query", "out of memory") == TK_DONE;
}

static void add(struct querying *q, const struct tk_place *place) {
  tk_trace_init(&q->traces.trace[q->traces.n], place, q->traces.n);
  q->traces.n++;
}

static void give_back(struct querying *q) {
  for (size_t i = 0; i < q->traces.n; i++) tk_trace_fini(&q->traces.trace[i]);
  free(q->traces.trace);
}

/* Of a file the generations that are in the asked time. */
static int find_part(const struct querying *q, const char *path, struct tk_trace_range *out) {
  const struct tk_selector *s = &q->selector;
  const struct tk_trace_range_ask ask = { .gens = { .first_gen = s->first_gen,
                                                    .last_gen = s->last_gen },
                                          .from_wall_ns = s->since_wall_ns,
                                          .to_wall_ns = s->until_wall_ns };
  struct tk_trace_ranges ranges = { 0 };
  struct tb_diag diag;

  *out = (struct tk_trace_range){ 0 };
  if (s->first_gen == 0 && s->last_gen == 0 && s->since_wall_ns == 0 && s->until_wall_ns == 0)
    return TK_DONE;
  tb_diag_clear(&diag);
  tb_rc rc = tk_trace_ranges_find("query", path, &ask, &diag, &ranges);
  if (rc == TB_IO) return TK_FAILED; /* said where it was seen */
  if (rc == TB_BROKEN) return tk_usage("query", "%s", diag.text);
  if (rc != TB_OK) return tk_fail("query", "%s: %s", path, diag.text);
  *out = ranges.part[0];
  tk_trace_ranges_fini(&ranges);
  return TK_DONE;
}

static int query_files(struct querying *q, enum tk_rows_format format) {
  if (!take_room(q, (size_t)q->n_files)) return TK_FAILED;
  for (int i = 0; i < q->n_files; i++) {
    const char *path = q->files[i];
    struct tk_place place = { .path = path, .name = path, .verb = "query" };
    if (strcmp(path, "-") == 0)
      return tk_usage("query", "a file is wanted: it may be read more than once");
    int code = find_part(q, path, &place.part);
    if (code != TK_DONE) return code;
    add(q, &place);
  }
  return tk_sql_run(&q->traces, q->sql, format);
}

static void say_what_is_read(const struct tk_fetched_traces *fetched) {
  char size[TK_SIZE_BYTES], missing[80] = "";

  tk_size_format(fetched->bytes, size);
  if (fetched->missing > 0)
    snprintf(missing, sizeof missing, "; %" PRIu64 " more are missing", fetched->missing);
  tk_fail("query", "%" PRIu64 " generation%s of %" PRIu64 " stream%s, %s%s", fetched->generations,
          fetched->generations == 1 ? "" : "s", fetched->streams, fetched->streams == 1 ? "" : "s",
          size, missing);
}

static int query_fetched(struct querying *q, const struct tk_fetched_traces *fetched,
                         enum tk_rows_format format) {
  say_what_is_read(fetched);
  if (!take_room(q, fetched->n)) return TK_FAILED;
  for (size_t i = 0; i < fetched->n; i++)
    add(q, &(struct tk_place){
               .path = fetched->trace[i].path, .name = fetched->trace[i].stream, .verb = "query" });
  return tk_sql_run(&q->traces, q->sql, format);
}

/* What the collector has is brought here, and read as files are. */
static int query_collector(struct querying *q, enum tk_rows_format format) {
  struct tk_fetched_traces fetched;
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_client_open(&q->client, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("query", rc, &diag);
  rc = tk_fetch_traces(client, &q->selector, q->all, !q->no_progress, &diag, &fetched);
  tk_client_close(client);
  if (rc != TB_OK) return tk_remote_fail("query", rc, &diag);
  int code = query_fetched(q, &fetched, format);
  give_back(q);
  q->traces = (struct tk_traces){ 0 };
  tk_fetched_fini(&fetched);
  return code;
}

/* ---- options ---- */

static int take_option(struct querying *q, int option, const char *value) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  switch (option) {
  case OPT_JSON: q->json = true; return TK_DONE;
  case OPT_CSV: q->csv = true; return TK_DONE;
  case OPT_LIST: q->list = true; return TK_DONE;
  case OPT_SAVED: q->saved = value; return TK_DONE;
  case OPT_NO_PROGRESS: q->no_progress = true; return TK_DONE;
  case OPT_ALL: q->all = true; break;
  case TK_OPT_FROM: option = TK_OPT_SINCE; break;
  case TK_OPT_TO: option = TK_OPT_UNTIL; break;
  default: break;
  }
  bool is_of_both = option == TK_OPT_SINCE || option == TK_OPT_UNTIL || option == TK_OPT_GEN;
  q->is_remote |= !is_of_both;
  if (option == OPT_ALL) return TK_DONE;
  tb_rc rc = tk_remote_option(&q->client, &q->selector, option, value, &diag);
  if (rc == TB_NOTFOUND) return tk_usage_hint("query");
  return rc == TB_OK ? TK_DONE : tk_remote_fail("query", rc, &diag);
}

/* The last argument is the statement, if none is named. */
static int take_arguments(struct querying *q, int argc, char **argv) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (q->json && q->csv) return tk_usage("query", "--json or --csv, not both");
  if (q->saved == NULL && argc == 0)
    return tk_usage("query",
                    "FILE and one statement are wanted; --list shows those that have a name");
  const struct tk_saved *saved = q->saved == NULL ? NULL : tk_saved_find(q->saved);
  if (q->saved != NULL && saved == NULL) return TK_USAGE;
  q->sql = saved != NULL ? saved->sql : argv[argc - 1];
  q->files = argv;
  q->n_files = saved != NULL ? argc : argc - 1;
  if (q->n_files > 0 && q->is_remote)
    return tk_usage("query", "FILE, or a collector's streams: not both");
  if (q->n_files == 0 && !q->is_remote)
    return tk_usage("query",
                    "FILE and one statement are wanted, or --service S for what a collector has");
  tb_rc rc = tk_selector_check(&q->selector, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("query", rc, &diag);
}

int tk_cmd_query(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, OPT_JSON },
    { "csv", no_argument, NULL, OPT_CSV },
    { "list", no_argument, NULL, OPT_LIST },
    { "saved", required_argument, NULL, OPT_SAVED },
    { "all", no_argument, NULL, OPT_ALL },
    { "no-progress", no_argument, NULL, OPT_NO_PROGRESS },
    { "from", required_argument, NULL, TK_OPT_FROM },
    { "to", required_argument, NULL, TK_OPT_TO },
    TK_SELECTOR_OPTIONS,
    TK_CLIENT_OPTIONS,
    { 0 },
  };
  struct querying q = { 0 };
  int code;

  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;)
    if ((code = take_option(&q, c, optarg)) != TK_DONE) return code;
  if (q.list && optind == argc && !q.csv) {
    tk_saved_list(q.json);
    return TK_DONE;
  }
  if (q.list) return tk_usage("query", "--list goes alone, or with --json");
  if ((code = take_arguments(&q, argc - optind, argv + optind)) != TK_DONE) return code;
  enum tk_rows_format format = q.json ? TK_ROWS_JSON : q.csv ? TK_ROWS_CSV : TK_ROWS_TEXT;
  code = q.n_files > 0 ? query_files(&q, format) : query_collector(&q, format);
  give_back(&q);
  return code;
}
