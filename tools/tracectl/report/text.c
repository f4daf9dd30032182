/* SPDX-License-Identifier: Apache-2.0 */
/* A report begins with its figures: distributions as a table, others a line each with the sentence of the schema;
 * its tables follow. Names come from the traced program, so they are printed through plain.h. */
#include "tools/tracectl/report/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/times.h"
#include "pack/distribution.h"
#include "pack/report_read.h"
#include "pack/trim.h"
#include "tools/tracectl/remote/names.h"
#include "tools/tracectl/report/cell.h"
#include "tools/tracectl/report/table_text.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Distribution Distribution;
typedef const struct tk_report_style Style;

enum { COLUMNS_MIN = 60, COLUMNS_DEFAULT = 100, FRAMES_DEFAULT = 4, LINE_BYTES = 512 };

struct tk_report_style tk_report_style_default(void) {
  struct tk_report_style style = { .out = stdout,
                                   .columns = COLUMNS_DEFAULT,
                                   .rows = TP_REPORT_ROWS_SHOWN,
                                   .frames = FRAMES_DEFAULT };
  const char *no_color = getenv("NO_COLOR");
  struct winsize size;

  if (isatty(STDOUT_FILENO)) {
    style.bold = no_color == NULL || no_color[0] == '\0';
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS_MIN)
      style.columns = size.ws_col;
  }
  return style;
}

void tk_heading_print(const char *text, Style *style) {
  fprintf(style->out, "%s%s%s\n", style->bold ? "\033[1m" : "", text, style->bold ? "\033[0m" : "");
}

/* ---- figures ---- */

static bool is_distribution(const FieldSchema *field) {
  return field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

/* A row with a name and a distribution. */
struct figure_row {
  Value name, *values[2];
  Row row;
};

static size_t fill_rows(const Report *r, struct figure_row *rows, Row **list) {
  size_t n = 0;

  for (size_t i = 0; i < r->schema->n_figures && i < r->n_figures; i++) {
    struct figure_row *at = &rows[n];
    if (!is_distribution(r->schema->figures[i])) continue;
    tracecollect__v1__value__init(&at->name);
    at->name.is_case = TRACECOLLECT__V1__VALUE__IS_TEXT;
    at->name.text = r->schema->figures[i]->name;
    at->values[0] = &at->name;
    at->values[1] = r->figures[i];
    tracecollect__v1__row__init(&at->row);
    at->row.n_values = 2;
    at->row.values = at->values;
    list[n++] = &at->row;
  }
  return n;
}

static void note_lower_bounds(const Report *r, Style *style) {
  for (size_t i = 0; i < r->schema->n_figures && i < r->n_figures; i++) {
    const Distribution *d = tp_value_distribution(r->figures[i]);
    char line[LINE_BYTES], count[TK_FORMAT_BYTES];
    if (d == NULL || d->lower_bounds == 0) continue;
    snprintf(line, sizeof(line),
             "%s of %s began before the first sync: their times are lower bounds.",
             tk_format_count(d->lower_bounds, count), r->schema->figures[i]->name);
    tk_words_print(line, 0, style);
  }
}

static void take_error(double *worst, const Distribution *d) {
  if (d != NULL && tp_distribution_error(d) > *worst) *worst = tp_distribution_error(d);
}

/* Says how much a quantile of this report may be off. */
static void note_errors(const Report *r, Style *style) {
  double figures = 0, rows = 0;
  char line[LINE_BYTES];

  for (size_t i = 0; i < r->n_figures; i++)
    take_error(&figures, tp_value_distribution(r->figures[i]));
  for (size_t t = 0; t < r->n_tables; t++)
    for (size_t i = 0; i < r->tables[t]->n_rows; i++)
      for (size_t c = 0; c < r->tables[t]->rows[i]->n_values; c++)
        take_error(&rows, tp_row_distribution(r->tables[t]->rows[i], c));
  if (figures == 0 && rows == 0) return;
  if (figures == 0)
    snprintf(line, sizeof(line), "Quantiles of rows are off by at most %.3g %%.", rows * 100);
  else if (rows > figures)
    snprintf(line, sizeof(line), "Quantiles are off by at most %.3g %%, those of rows by %.3g %%.",
             figures * 100, rows * 100);
  else
    snprintf(line, sizeof(line), "Quantiles are off by at most %.3g %%.", figures * 100);
  tk_words_print(line, 0, style);
}

/* Prints figures that are distributions as a table. */
static void print_distributions(const StreamReport *report, Style *style) {
  static char no_name[] = "";
  FieldSchema name = TRACECOLLECT__V1__FIELD_SCHEMA__INIT;
  FieldSchema count = TRACECOLLECT__V1__FIELD_SCHEMA__INIT;
  FieldSchema *columns[] = { &name, &count };
  TableSchema schema = TRACECOLLECT__V1__TABLE_SCHEMA__INIT;
  Tracecollect__V1__Table rows = TRACECOLLECT__V1__TABLE__INIT;
  const struct tp_table table = { report->report, &schema, &rows };
  struct figure_row *row = calloc(report->report->n_figures + 1, sizeof(*row));

  rows.rows = calloc(report->report->n_figures + 1, sizeof(*rows.rows));
  if (row != NULL && rows.rows != NULL) rows.n_rows = fill_rows(report->report, row, rows.rows);
  name.name = no_name;
  name.type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT;
  count.type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  schema.columns = columns;
  schema.n_columns = 2;
  if (rows.n_rows > 0) {
    fputc('\n', style->out);
    tk_table_rows_print(report, &table, style);
    note_errors(report->report, style);
    note_lower_bounds(report->report, style);
  }
  free(rows.rows);
  free(row);
}

void tk_words_print(const char *words, size_t column, Style *style) {
  char text[TK_CELL_BYTES];
  size_t at = column;

  snprintf(text, sizeof(text), "%s", words);
  tk_plain_text(text);
  for (const char *word = text; *word != '\0';) {
    size_t n = strcspn(word, " ");
    bool is_first = at == column;
    if (!is_first && at + 1 + n > style->columns) {
      fprintf(style->out, "\n%*s", (int)column, "");
      at = column;
    } else if (!is_first) {
      fputc(' ', style->out);
      at++;
    }
    fprintf(style->out, "%.*s", (int)n, word);
    at += n;
    word += n + (word[n] == ' ');
  }
  fputc('\n', style->out);
}

struct widths {
  size_t name, value;
};

static void measure(const StreamReport *report, FieldSchema *const *field, size_t n,
                    Value *const *value, size_t values, struct widths *w) {
  char text[TK_CELL_BYTES];

  for (size_t i = 0; i < n; i++) {
    tk_cell_name(field[i], text);
    if (tk_cell_width(text) > w->name) w->name = tk_cell_width(text);
    if (i >= values || is_distribution(field[i])) continue;
    tk_cell_text(report, field[i], value[i], TK_PART_WHOLE, text);
    if (tk_cell_width(text) > w->value) w->value = tk_cell_width(text);
  }
}

/* Prints NAME  VALUE  SENTENCE; distributions are printed before, with their numbers. */
static void print_fields(const StreamReport *report, FieldSchema *const *field, size_t n,
                         Value *const *value, size_t values, const struct widths *w, Style *style) {
  char text[TK_CELL_BYTES];

  for (size_t i = 0; i < n; i++) {
    tk_cell_name(field[i], text);
    fprintf(style->out, "%s%*s  ", text, (int)(w->name - tk_cell_width(text)), "");
    text[0] = '\0';
    if (!is_distribution(field[i])) {
      tk_cell_text(report, field[i], i < values ? value[i] : NULL, TK_PART_WHOLE, text);
      if (text[0] == '\0') snprintf(text, sizeof(text), "-");
    }
    size_t width = tk_cell_width(text);
    fprintf(style->out, "%*s%s  ", (int)(w->value > width ? w->value - width : 0), "", text);
    tk_words_print(field[i]->about, w->name + w->value + 4, style);
  }
}

static void print_figures(const StreamReport *report, Style *style) {
  const Report *r = report->report;
  const Tracecollect__V1__ReportSchema *schema = r->schema;
  struct widths w = { 0, 1 };

  print_distributions(report, style);
  if (schema->n_figures + schema->n_options == 0) return;
  fputc('\n', style->out);
  measure(report, schema->figures, schema->n_figures, r->figures, r->n_figures, &w);
  measure(report, schema->options, schema->n_options, r->options, r->n_options, &w);
  print_fields(report, schema->figures, schema->n_figures, r->figures, r->n_figures, &w, style);
  print_fields(report, schema->options, schema->n_options, r->options, r->n_options, &w, style);
}

/* ---- tables ---- */

static void print_table(const StreamReport *report, size_t t, Style *style) {
  const struct tp_table table = { report->report, report->report->schema->tables[t],
                                  report->report->tables[t] };
  char line[LINE_BYTES], of[TK_FORMAT_BYTES + 8] = "", count[TK_FORMAT_BYTES];
  size_t n = table.table->n_rows;

  if (n == 0) {
    snprintf(line, sizeof(line), "%s: none.", table.schema->about);
    fputc('\n', style->out);
    tk_words_print(line, 0, style);
    return;
  }
  if (table.table->rows[n - 1]->other) n--;
  if (n < table.table->rows_total)
    snprintf(of, sizeof(of), " of %s", tk_format_count(table.table->rows_total, count));
  snprintf(line, sizeof(line), "%s: %s", table.schema->about, tk_format_count(n, count));
  snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s, %s", of, table.schema->order);
  tk_plain_text(line);
  fputc('\n', style->out);
  tk_heading_print(line, style);
  tk_table_rows_print(report, &table, style);
}

/* ---- a report ---- */

static void print_notes(const Report *r, Style *style) {
  if (r->n_notes > 0) fputc('\n', style->out);
  for (size_t i = 0; i < r->n_notes; i++) tk_words_print(r->notes[i], 0, style);
}

/* A merged report has none: each stream counts its own. */
static void print_generations(const StreamReport *report, Style *style) {
  if (report->instances > 0) return;
  if (report->first_gen == report->last_gen)
    fprintf(style->out, ", generation %" PRIu64, report->first_gen);
  else
    fprintf(style->out, ", generations %" PRIu64 " to %" PRIu64, report->first_gen,
            report->last_gen);
}

static void print_title(const StreamReport *report, const char *source, Style *style) {
  char line[LINE_BYTES], span[TK_FORMAT_BYTES], events[TK_FORMAT_BYTES], until[TC_TIME_BYTES];
  char ended[TC_TIME_BYTES], count[TK_FORMAT_BYTES], id[TK_STREAM_TEXT];
  uint64_t ns = report->time_ns > 0 ? report->time_ns
                                    : (uint64_t)report->until_ns - (uint64_t)report->from_ns;
  bool is_sum = report->instances > 0;

  if (source != NULL)
    snprintf(line, sizeof(line), "%s  %s", report->kind, source);
  else if (is_sum)
    snprintf(line, sizeof(line), "%s  %s: %s instance%s", report->kind, report->service,
             tk_format_count(report->instances, count), report->instances == 1 ? "" : "s");
  else
    snprintf(line, sizeof(line), "%s  %s/%s", report->kind, report->service, report->instance);
  if (report->n_streams > report->instances)
    snprintf(line + strlen(line), sizeof(line) - strlen(line), ", %zu streams", report->n_streams);
  bool has_stream = source == NULL && !is_sum && report->stream.len > 0;
  tc_time_format(report->ended_wall_ns, ended);
  if (has_stream || report->ended_wall_ns != 0)
    snprintf(line + strlen(line), sizeof(line) - strlen(line), "  (%s%s%s%s%s)",
             has_stream ? "stream " : "", has_stream ? tk_stream_text(&report->stream, 8, id) : "",
             has_stream && report->ended_wall_ns != 0 ? ", " : "",
             report->ended_wall_ns != 0 ? "ended " : "", report->ended_wall_ns != 0 ? ended : "");
  tk_plain_text(line);
  tk_heading_print(line, style);
  fputs("window ", style->out);
  tk_put_plain(style->out, report->window);
  fprintf(style->out, ": %s%s", tk_format_ns(ns, span), is_sum ? " together" : "");
  if (report->until_wall_ns != 0) {
    tc_time_format(report->until_wall_ns, until);
    fprintf(style->out, " until %s", until);
  }
  print_generations(report, style);
  fprintf(style->out, ", %s events\n", tk_format_count(report->events, events));
  if (report->thinned_events > 0)
    fprintf(style->out, "%.3g %% of the events are analysed.\n",
            tp_report_analysed_share(report) * 100);
  if (report->broken_generations > 0)
    fprintf(style->out, "%" PRIu64 " broken generation%s skipped.\n", report->broken_generations,
            report->broken_generations == 1 ? " was" : "s were");
}

void tk_report_print(const StreamReport *report, const char *source, Style *style) {
  const Report *r = report->report;

  print_title(report, source, style);
  print_notes(r, style);
  print_figures(report, style);
  for (size_t t = 0; t < r->schema->n_tables && t < r->n_tables; t++) print_table(report, t, style);
}
