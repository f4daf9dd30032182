/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl index FILE: its generations, and where each begins. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/index.h"

struct index_options {
  bool write, json, progress;
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

/* All rows there are, then the fault. */
static int give(const char *path, const struct index_options *o, const struct tk_index *index) {
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

int tk_cmd_index(int argc, char **argv) {
  static const struct option options[] = { { "write", no_argument, NULL, 'w' },
                                           { "json", no_argument, NULL, 'j' },
                                           { "no-progress", no_argument, NULL, 'P' },
                                           { "goroutine", required_argument, NULL, 'g' },
                                           { 0 } };
  struct index_options o = { .progress = true };
  struct tk_index index;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;) {
    switch (c) {
    case 'w': o.write = true; break;
    case 'j': o.json = true; break;
    case 'P': o.progress = false; break;
    case 'g':
      if (tk_selector_goroutine(optarg, &o.goroutine, &diag) != TB_OK)
        return tk_usage("index", "%s", diag.text);
      break;
    default: return tk_usage_hint("index");
    }
  }
  if (optind + 1 != argc) return tk_usage("index", "one FILE is wanted");
  const char *path = argv[optind];
  if (o.write && strcmp(path, "-") == 0)
    return tk_usage("index", "--write wants a file, to lie beside it");
  bool known = !o.write && tk_index_load(path, &index);
  if (known && o.goroutine != 0 && !tk_index_knows_goroutines(&index)) {
    tk_index_fini(&index);
    known = false;
  }
  if (!known && !tk_index_scan("index", path, true, o.progress, &index)) return TK_FAILED;
  int code = give(path, &o, &index);
  tk_index_fini(&index);
  return code;
}
