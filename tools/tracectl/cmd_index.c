/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl index FILE: lists its generations and their offsets. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/index.h"
#include "tools/tracectl/url/url.h"

struct index_options {
  bool write, json, no_progress;
  uint64_t goroutine; /* 0: any */
};

static void format_time(uint64_t wall_ns, char out[TC_TIME_BYTES], const char **shown) {
  tc_time_format(wall_ns, out);
  *shown = wall_ns != 0 ? out : "";
}

static bool is_shown(const struct index_options *o, const struct tk_index_row *row) {
  return o->goroutine == 0 || tk_index_has_goroutine(row, (int64_t)o->goroutine);
}

static int print_json(const struct index_options *o, const struct tk_index *index) {
  for (size_t i = 0; i < index->n; i++) {
    const struct tk_index_row *row = &index->row[i];
    char begin[TC_TIME_BYTES], end[TC_TIME_BYTES];
    const char *began, *ended;

    if (!is_shown(o, row)) continue;
    format_time(row->begin_wall_ns, begin, &began);
    format_time(row->end_wall_ns, end, &ended);
    json_t *line = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:b}", "gen", (json_int_t)row->gen,
                             "offset", (json_int_t)row->offset, "bytes", (json_int_t)row->bytes,
                             "batches", (json_int_t)row->batches, "events", (json_int_t)row->events,
                             "since_ns", (json_int_t)row->since_ns, "began", began, "ended", ended,
                             "estimated", row->estimated);
    if (line != NULL && row->active != NULL)
      json_object_set_new(line, "goroutines", json_integer((json_int_t)tk_index_goroutines(row)));
    if (line == NULL) return tk_fail("index", "out of memory");
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
  }
  return TK_DONE;
}

static void print_table(const struct index_options *o, const struct tk_index *index) {
  struct tk_table table;

  tk_table_init(&table, ">GENERATION,>OFFSET,>BYTES,>BATCHES,>EVENTS,>GOROUTINES,>SINCE,BEGAN");
  for (size_t i = 0; i < index->n; i++) {
    const struct tk_index_row *row = &index->row[i];
    char since[TK_FORMAT_BYTES], began[TC_TIME_BYTES];

    if (!is_shown(o, row)) continue;
    tc_time_format(row->begin_wall_ns, began);
    tk_table_add(&table, "%" PRIu64, row->gen);
    tk_table_add(&table, "%" PRIu64, row->offset);
    tk_table_add(&table, "%" PRIu64, row->bytes);
    tk_table_add(&table, "%" PRIu64, row->batches);
    tk_table_add(&table, "%" PRIu64, row->events);
    if (row->active != NULL)
      tk_table_add(&table, "%" PRIu64, tk_index_goroutines(row));
    else
      tk_table_add(&table, "?");
    tk_table_add(&table, "%s", tk_format_ns(row->since_ns, since));
    tk_table_add(&table, "%s%s", row->estimated ? "~" : "", began);
  }
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
}

static int save(const char *path, const struct tk_index *index) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  return tk_index_save(path, index, &diag) == TB_OK ? TK_DONE : tk_fail("index", "%s", diag.text);
}

/* Prints all rows there are, then the fault. */
static int print_index(const char *path, const struct index_options *o,
                       const struct tk_index *index) {
  char why[300];
  int code = TK_DONE;

  if (o->json)
    code = print_json(o, index);
  else if (index->n > 0)
    print_table(o, index);
  if (index->fault.rc != TB_OK) {
    tb_diag_format(&index->fault, why, sizeof why);
    return tk_fail("index", "%s: %s", path, why);
  }
  if (code == TK_DONE && o->write) code = save(path, index);
  return code;
}

#define AT(member) offsetof(struct index_options, member)
const struct tk_option tk_index_options[] = {
  TK_OPTION(0, "write", NULL, tk_read_flag, AT(write),
            "keep it as FILE.index, which cat --gen, --since, --until and --goroutine then use"),
  TK_OPTION(0, "goroutine", "N", tk_read_count, AT(goroutine),
            "only the generations in which this goroutine does something"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object a generation"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_url_tls_options, 0),
  { 0 },
};

int tk_cmd_index(int argc, char **argv) {
  struct index_options o = { 0 };
  struct tk_index index;
  int code = tk_options_read(argc, argv, tk_index_options, &o);

  if (code != TK_DONE) return code;
  if (optind + 1 != argc) return tk_usage("index", "one FILE is required");
  const char *path = argv[optind];
  if (o.write && strcmp(path, "-") == 0)
    return tk_usage("index", "--write needs a file: the index is written beside it");
  bool known = !o.write && tk_index_load(path, &index);
  if (known && o.goroutine != 0 && !tk_index_knows_goroutines(&index)) {
    tk_index_fini(&index);
    known = false;
  }
  if (!known && !tk_index_scan("index", path, true, !o.no_progress, &index)) return TK_FAILED;
  code = print_index(path, &o, &index);
  tk_index_fini(&index);
  return code;
}
