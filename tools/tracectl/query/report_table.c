/* SPDX-License-Identifier: Apache-2.0 */
/* The table `reports`: a row for the figures of each kind of report, and one for each row of its tables. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "pack/report_json.h"
#include "tools/tracectl/query/scan.h"
#include "tools/tracectl/report/set.h"
#include "tools/tracectl/term/tracectl.h"

struct report_row {
  const char *kind;
  char *name, *json;
};

struct tk_report_rows {
  struct report_row *row;
  size_t n, room, at;
};

static const struct report_row *row(const struct tk_scan *c) {
  return &c->reports->row[c->reports->at];
}

static void r_kind(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, row(c)->kind);
}

static void r_window(struct tk_scan *c, struct tk_value *out) {
  (void)c;
  tk__name(out, to_window_name(TO_WINDOW_ALL));
}

static void r_name(struct tk_scan *c, struct tk_value *out) {
  tk__words(out, row(c)->name);
}

static void r_row(struct tk_scan *c, struct tk_value *out) {
  tk__words(out, row(c)->json);
}

static tb_rc add_row(struct tk_report_rows *rows, const char *kind, const char *name,
                     const json_t *value) {
  TB_TRY(TB_GROW(rows->row, rows->room, rows->n));
  struct report_row *added = &rows->row[rows->n];
  *added = (struct report_row){ kind, strdup(name),
                                json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(12)) };
  rows->n++;
  return added->name != NULL && added->json != NULL ? TB_OK : TB_NOMEM;
}

static tb_rc add_report(struct tk_report_rows *rows, const char *kind, const json_t *report) {
  json_t *table, *value;
  const char *name;
  size_t i;

  TB_TRY(add_row(rows, kind, "figures", json_object_get(report, "figures")));
  json_object_foreach(json_object_get(report, "tables"), name, table)
      json_array_foreach(table, i, value) TB_TRY(add_row(rows, kind, name, value));
  return TB_OK;
}

static tb_rc take_report(struct tk_report_rows *rows,
                         const Tracecollect__V1__StreamReport *report) {
  enum to_analysis_kind kind;
  struct tb_buf text;

  tb_buf_init(&text, &tk_mem);
  tp_report_json(&text, report);
  json_t *parsed =
      text.rc != TB_OK ? NULL : json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL);
  tb_rc rc = TB_NOMEM;
  if (parsed != NULL && to_analysis_find(report->report->schema->name, &kind))
    rc = add_report(rows, to_analysis_name(kind), parsed);
  json_decref(parsed);
  tb_buf_fini(&text);
  return rc;
}

/* Returns false if there is no such kind of report. */
static bool choose(const struct tk_scan *c, struct tk_report_ask *ask) {
  enum to_analysis_kind only = TO_ANALYSIS_KINDS;
  const char *name = c->wants.name;

  if (name[0] != 0 && !to_analysis_find(name, &only)) return false;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) ask->kind[k] = name[0] == 0 || k == only;
  ask->every_curve = ask->kind[TO_ANALYSIS_GC];
  return true;
}

static void reports_end(struct tk_scan *c) {
  struct tk_report_rows *rows = c->reports;

  for (size_t i = 0; rows != NULL && i < rows->n; i++) {
    free(rows->row[i].name);
    free(rows->row[i].json);
  }
  if (rows != NULL) free(rows->row);
  free(rows);
  c->reports = NULL;
}

static int reports_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  (void)error;
  return ++c->reports->at < c->reports->n;
}

static int reports_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  const struct tk_place *place = &c->trace->place;
  struct tk_report_ask ask = { .verb = place->verb,
                               .window = TO_WINDOW_ALL,
                               .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                               .rows_max = SIZE_MAX,
                               .part = place->part.end != 0 ? &place->part : NULL };
  struct tk_report_set set;
  tb_rc rc = TB_OK;

  c->reports = calloc(1, sizeof *c->reports);
  if (c->reports == NULL) rc = TB_NOMEM;
  if (rc == TB_OK && !choose(c, &ask)) return 0;
  tk_report_set_init(&set);
  int code = rc != TB_OK ? TK_FAILED : tk_report_file(place->path, &ask, &set);
  for (size_t i = 0; rc == TB_OK && code == TK_DONE && i < set.n; i++)
    rc = take_report(c->reports, set.report[i]);
  tk_report_set_fini(&set);
  error[0] = 0; /* the trace's fault is already reported */
  if (rc != TB_OK) snprintf(error, TK_QUERY_ERROR, "%s", tb_rc_text(rc));
  if (code != TK_DONE || rc != TB_OK) return -1;
  return c->reports->n > 0;
}

static const struct tk_table_ops ops = { reports_begin, reports_next, reports_end };

const struct tk_query_table tk__report_tables[] = {
  { .name = "reports",
    .ops = &ops,
    .column = { { "stream", tk__stream },
                { "kind", r_kind, TK_PUSH_NAME },
                { "window", r_window },
                { "name", r_name },
                { "row", r_row } } },
  { 0 },
};
