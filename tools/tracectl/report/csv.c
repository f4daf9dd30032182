/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pack/distribution.h"
#include "pack/report_read.h"
#include "tools/tracectl/term/csv.h"
#include "tools/tracectl/term/plain.h"

typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;

static const char *const parts[] = {
  "count",  "total_ns", "min_ns",  "max_ns",      "p50_ns",
  "p90_ns", "p99_ns",   "p999_ns", "error_share", "lower_bounds"
};
enum { PARTS = sizeof(parts) / sizeof(*parts) };

static bool is_distribution(const FieldSchema *field) {
  return field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

/* Writes text of a traced program. Without memory the cell is empty. */
static void put_text(FILE *out, const char *text) {
  char *copy = strdup(text);

  if (copy != NULL) tk_plain_text(copy);
  tk_csv_put(out, copy);
  free(copy);
}

void tk_csv_head(FILE *out, const TableSchema *head, bool is_live) {
  if (is_live) fputs("service,instance,analysed_share,", out);
  for (size_t c = 0; c < head->n_columns; c++) {
    const FieldSchema *field = head->columns[c];
    if (c > 0) fputc(',', out);
    if (!is_distribution(field)) {
      put_text(out, field->name);
      continue;
    }
    for (unsigned i = 0; i < PARTS; i++)
      fprintf(out, "%s%s_%s", i > 0 ? "," : "", field->name, parts[i]);
  }
  fputs(head->list ? "\r\n" : ",other\r\n", out);
}

static void put_distribution(FILE *out, const Distribution *d) {
  if (d == NULL) {
    for (unsigned i = 1; i < PARTS; i++) fputc(',', out);
    return;
  }
  fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, d->count, d->total_ns, d->min_ns,
          d->max_ns);
  if (d->no_quantiles)
    fputs(",,,,,", out);
  else
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.4g", d->p50_ns, d->p90_ns,
            d->p99_ns, d->p999_ns, tp_distribution_error(d));
  fprintf(out, ",%" PRIu64, d->lower_bounds);
}

static void put_stack(FILE *out, const Tracecollect__V1__Report *r, const Value *stack) {
  size_t n = tp_stack_length(r, stack), bytes = 0;
  char *text = NULL;
  FILE *frames = open_memstream(&text, &bytes);

  if (frames == NULL) return;
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(r, stack, i);
    if (frame == NULL) continue;
    fprintf(frames, "%s%s", i > 0 ? "; " : "", frame->function);
    if (frame->file[0] != '\0') fprintf(frames, " %s:%" PRIu64, frame->file, frame->line);
  }
  if (fclose(frames) == 0) put_text(out, text);
  free(text);
}

static void put_value(FILE *out, const Tracecollect__V1__Report *r, const FieldSchema *field,
                      const Value *value) {
  if (is_distribution(field)) {
    put_distribution(out, tp_value_distribution(value));
    return;
  }
  switch (value != NULL ? value->is_case : TRACECOLLECT__V1__VALUE__IS__NOT_SET) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER:
    if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_FLAG)
      fputs(value->number != 0 ? "true" : "false", out);
    else
      fprintf(out, "%" PRId64, value->number);
    break;
  case TRACECOLLECT__V1__VALUE__IS_SHARE: fprintf(out, "%.17g", value->share); break;
  case TRACECOLLECT__V1__VALUE__IS_TEXT: put_text(out, value->text); break;
  case TRACECOLLECT__V1__VALUE__IS_STACK: put_stack(out, r, value); break;
  default: break;
  }
}

static void put_row(FILE *out, const struct tp_table *table, const TableSchema *head,
                    const Row *row) {
  for (size_t c = 0; c < head->n_columns; c++) {
    const char *name = head->columns[c]->name;
    if (c > 0) fputc(',', out);
    put_value(out, table->report, head->columns[c],
              tp_row_value(row, tp_table_column(table, name)));
  }
  if (!head->list) fputs(row->other ? ",true" : ",false", out);
  fputs("\r\n", out);
}

void tk_csv_rows(FILE *out, const Tracecollect__V1__StreamReport *report, const TableSchema *head,
                 bool is_live) {
  struct tp_table table;

  if (!tp_report_table(report->report, head->name, &table)) return;
  for (size_t i = 0; i < table.table->n_rows; i++) {
    if (is_live) {
      put_text(out, report->service);
      fputc(',', out);
      put_text(out, report->instance);
      fprintf(out, ",%.9g,", tp_report_analysed_share(report));
    }
    put_row(out, &table, head, table.table->rows[i]);
  }
}
