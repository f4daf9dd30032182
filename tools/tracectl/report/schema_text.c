/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/schema_text.h"

#include <stdio.h>
#include <string.h>

#include "pack/report_json.h"

typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef const struct tk_report_style Style;

enum { TYPE_WIDTH = 12 /* "distribution" */, INDENT = 2, LINE_BYTES = 256 };

static size_t widest_name(const Tracecollect__V1__ReportSchema *schema) {
  size_t width = 0;

  for (size_t i = 0; i < schema->n_options; i++)
    if (strlen(schema->options[i]->name) > width) width = strlen(schema->options[i]->name);
  for (size_t i = 0; i < schema->n_figures; i++)
    if (strlen(schema->figures[i]->name) > width) width = strlen(schema->figures[i]->name);
  for (size_t t = 0; t < schema->n_tables; t++)
    for (size_t c = 0; c < schema->tables[t]->n_columns; c++) {
      size_t len = strlen(schema->tables[t]->columns[c]->name);
      if (len > width) width = len;
    }
  return width;
}

static void print_fields(FieldSchema *const *field, size_t n, size_t keys, size_t width,
                         Style *style) {
  for (size_t i = 0; i < n; i++) {
    char about[LINE_BYTES];
    bool is_metric = field[i]->metric[0] != '\0';
    snprintf(about, sizeof(about), "%s%s%s%s%s", i < keys ? "Key. " : "", field[i]->about,
             is_metric ? " Metric " : "", field[i]->metric, is_metric ? "." : "");
    int used = fprintf(style->out, "%*s%-*s  ", INDENT, "", (int)width, field[i]->name);
    if (about[0] == '\0') {
      fprintf(style->out, "%s\n", tp_value_type_name(field[i]->type));
      continue;
    }
    used += fprintf(style->out, "%-*s  ", TYPE_WIDTH, tp_value_type_name(field[i]->type));
    tk_words_print(about, (size_t)used, style);
  }
}

static void print_list(Style *style, const char *title, FieldSchema *const *field, size_t n,
                       size_t width) {
  if (n == 0) return;
  fputc('\n', style->out);
  tk_heading_print(title, style);
  print_fields(field, n, 0, width, style);
}

static void print_table(const TableSchema *table, size_t width, Style *style) {
  char line[LINE_BYTES];

  snprintf(line, sizeof(line), "table %s: %s, %s", table->name, table->about, table->order);
  fputc('\n', style->out);
  tk_heading_print(line, style);
  print_fields(table->columns, table->n_columns, table->keys, width, style);
}

void tk_schema_print(const Tracecollect__V1__ReportSchema *schema, Style *style) {
  char line[LINE_BYTES];
  size_t width = widest_name(schema);

  snprintf(line, sizeof(line), "%s: %s", schema->name, schema->about);
  tk_heading_print(line, style);
  print_list(style, "options", schema->options, schema->n_options, width);
  print_list(style, "figures", schema->figures, schema->n_figures, width);
  for (size_t t = 0; t < schema->n_tables; t++) print_table(schema->tables[t], width, style);
}
