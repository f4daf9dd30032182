/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/output.h"

#include <stdio.h>
#include <string.h>

#include "pack/report_json.h"
#include "tools/tracectl/report/csv.h"
#include "tools/tracectl/report/schema_text.h"
#include "tools/tracectl/report/words.h"
#include "tools/tracectl/term/tracectl.h"

bool tk_report_pick(Tracecollect__V1__StreamReport *report, const char *table) {
  Tracecollect__V1__Report *r = report->report;

  for (size_t t = 0; t < r->n_tables && t < r->schema->n_tables; t++) {
    if (strcmp(r->schema->tables[t]->name, table) != 0) continue;
    r->tables[0] = r->tables[t];
    r->schema->tables[0] = r->schema->tables[t];
    r->n_tables = r->schema->n_tables = 1;
    return true;
  }
  return false;
}

/* main() reports a failure of stdout. */
static tb_rc end_line(struct tb_buf *line) {
  tb_buf_byte(line, '\n');
  tb_rc rc = line->rc;
  if (rc == TB_OK) fwrite(line->data, 1, line->len, stdout);
  tb_buf_fini(line);
  return rc;
}

static tb_rc print_json(const Tracecollect__V1__StreamReport *report) {
  struct tb_buf line;

  tb_buf_init(&line, &tk_mem);
  tp_report_json(&line, report);
  return end_line(&line);
}

static tb_rc print_report(const Tracecollect__V1__StreamReport *report, enum tk_report_form form,
                          const Tracecollect__V1__TableSchema *csv_table, const char *source,
                          const struct tk_report_style *style, bool is_first) {
  switch (form) {
  case TK_REPORT_JSON: return print_json(report);
  case TK_REPORT_CSV: tk_csv_rows(stdout, report, csv_table, source == NULL); return TB_OK;
  default:
    if (!is_first) putchar('\n');
    tk_report_print(report, source, style);
    return TB_OK;
  }
}

/* Reports of a kind that this program does not have are named in one line, if there are others. */
struct unused {
  char kinds[128];
  size_t n;
};

static bool leave_out(struct unused *unused, const struct tk_report_set *set,
                      enum tk_report_form form, const Tracecollect__V1__StreamReport *report) {
  if (form != TK_REPORT_TEXT || set->n + set->n_merged == 1 || !tk_report_is_unused(report))
    return false;
  size_t used = strlen(unused->kinds);
  if (strstr(unused->kinds, report->kind) == NULL)
    snprintf(unused->kinds + used, sizeof unused->kinds - used, "%s%s",
             unused->n++ == 0 ? "" : ", ", report->kind);
  return true;
}

struct printing {
  struct tk_report_set *set;
  enum tk_report_form form;
  const Tracecollect__V1__TableSchema *csv_table;
  const char *source;
  const struct tk_report_style *style;
  struct unused unused;
  size_t n;
};

static tb_rc print_one(struct printing *p, Tracecollect__V1__StreamReport *report) {
  if (leave_out(&p->unused, p->set, p->form, report)) return TB_OK;
  if (p->form == TK_REPORT_TEXT) TB_TRY(tk_report_words(&p->set->arena, report));
  return print_report(report, p->form, p->csv_table, p->source, p->style, p->n++ == 0);
}

tb_rc tk_report_set_print(struct tk_report_set *set, enum tk_report_form form,
                          const Tracecollect__V1__TableSchema *csv_table, const char *source,
                          const struct tk_report_style *style) {
  struct printing p = { set, form, csv_table, source, style, .n = 0 };

  if (form == TK_REPORT_CSV) tk_csv_head(stdout, csv_table, source == NULL);
  for (size_t i = 0; i < set->n_merged; i++)
    if (form != TK_REPORT_CSV || !csv_table->list) TB_TRY(print_one(&p, set->merged[i]));
  for (size_t i = 0; i < set->n; i++) TB_TRY(print_one(&p, set->report[i]));
  if (p.unused.n > 0)
    printf("%sLeft out, as the trace of this C program has none: %s.\n", p.n > 0 ? "\n" : "",
           p.unused.kinds);
  return TB_OK;
}

tb_rc tk_schemas_print(Tracecollect__V1__ReportSchema *const *schemas, size_t n, bool is_json,
                       const struct tk_report_style *style) {
  for (size_t i = 0; i < n; i++) {
    struct tb_buf line;
    if (!is_json) {
      if (i > 0) putchar('\n');
      tk_schema_print(schemas[i], style);
      continue;
    }
    tb_buf_init(&line, &tk_mem);
    tp_schema_json(&line, schemas[i]);
    TB_TRY(end_line(&line));
  }
  return TB_OK;
}
