/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "pack/report_read.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Distribution Distribution;

const char *tk_part_name(enum tk_part part) {
  static const char *const names[TK_PARTS] = { "",    "count", "total", "mean",
                                               "p50", "p90",   "p99",   "max" };
  return names[part];
}

static bool ends_with(const char *text, const char *end) {
  size_t len = strlen(text), end_len = strlen(end);
  return len > end_len && strcmp(text + len - end_len, end) == 0;
}

void tk_cell_name(const FieldSchema *field, char out[TK_CELL_BYTES]) {
  static const char *const units[] = { "_ns", "_bytes" };

  snprintf(out, TK_CELL_BYTES, "%s", field->name);
  for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
    if (ends_with(out, units[i])) out[strlen(out) - strlen(units[i])] = '\0';
  tk_plain_text(out);
}

size_t tk_cell_width(const char *text) {
  size_t n = 0;

  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

static void write_ns(uint64_t ns, char out[TK_CELL_BYTES]) {
  char text[TK_FORMAT_BYTES];
  size_t len = strlen(tk_format_ns(ns, text));
  bool pad = len >= 2 && text[len - 2] == ' ';

  snprintf(out, TK_CELL_BYTES, "%s%s", text, pad ? " " : "");
}

static void write_count(uint64_t n, char out[TK_CELL_BYTES]) {
  char text[TK_FORMAT_BYTES];
  snprintf(out, TK_CELL_BYTES, "%s", tk_format_count(n, text));
}

/* Formats the time of day if the report has the wall clock, else seconds of the trace clock. */
static void write_time(const StreamReport *report, int64_t ns, char out[TK_CELL_BYTES]) {
  char wall[TC_TIME_BYTES];

  if (report->until_wall_ns == 0) {
    snprintf(out, TK_CELL_BYTES, "%.6f", (double)ns / 1e9);
    return;
  }
  tc_time_format(report->until_wall_ns - (uint64_t)report->until_ns + (uint64_t)ns, wall);
  const char *day_end = strchr(wall, 'T');
  snprintf(out, TK_CELL_BYTES, "%s", day_end != NULL ? day_end + 1 : wall);
}

static void write_number(const StreamReport *report, const FieldSchema *field, int64_t n,
                         char out[TK_CELL_BYTES]) {
  char size[TK_SIZE_BYTES];

  switch (field->type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS: write_ns((uint64_t)n, out); break;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME: write_time(report, n, out); break;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT: write_count((uint64_t)n, out); break;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_FLAG:
    snprintf(out, TK_CELL_BYTES, "%s", n != 0 ? "yes" : "no");
    break;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES:
    tk_size_format((uint64_t)n, size);
    snprintf(out, TK_CELL_BYTES, "%s", size);
    break;
  default: snprintf(out, TK_CELL_BYTES, "%" PRId64, n); break;
  }
}

/* A dash means that nothing happened, not that it took no time. */
static void write_length(const Distribution *d, uint64_t ns, char out[TK_CELL_BYTES]) {
  if (d->count > 0 && ns == 0)
    snprintf(out, TK_CELL_BYTES, "0 ns");
  else
    write_ns(ns, out);
}

static void write_quantile(const Distribution *d, uint64_t ns, char out[TK_CELL_BYTES]) {
  if (!d->no_quantiles) write_length(d, ns, out);
}

static void write_part(const Distribution *d, enum tk_part part, char out[TK_CELL_BYTES]) {
  switch (part) {
  case TK_PART_COUNT: write_count(d->count, out); break;
  case TK_PART_TOTAL: write_length(d, d->total_ns, out); break;
  case TK_PART_MEAN: write_length(d, d->count > 0 ? d->total_ns / d->count : 0, out); break;
  case TK_PART_P50: write_quantile(d, d->p50_ns, out); break;
  case TK_PART_P90: write_quantile(d, d->p90_ns, out); break;
  case TK_PART_P99: write_quantile(d, d->p99_ns, out); break;
  default: write_length(d, d->max_ns, out); break;
  }
}

void tk_cell_text(const StreamReport *report, const FieldSchema *field, const Value *value,
                  enum tk_part part, char out[TK_CELL_BYTES]) {
  out[0] = '\0';
  switch (value != NULL ? value->is_case : TRACECOLLECT__V1__VALUE__IS__NOT_SET) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER: write_number(report, field, value->number, out); break;
  case TRACECOLLECT__V1__VALUE__IS_SHARE:
    snprintf(out, TK_CELL_BYTES, "%.3g %%", value->share * 100);
    break;
  case TRACECOLLECT__V1__VALUE__IS_TEXT:
    snprintf(out, TK_CELL_BYTES, "%s", value->text);
    tk_plain_text(out);
    break;
  case TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION: write_part(value->distribution, part, out); break;
  default: break;
  }
}
