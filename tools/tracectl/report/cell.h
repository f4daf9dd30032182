/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a report as people read it. What it is, its schema says. */
#ifndef TK_REPORT_CELL_H
#define TK_REPORT_CELL_H

#include <stddef.h>

#include "proto/report.pb-c.h"

enum { TK_CELL_BYTES = 1280 };

/* What of a distribution is shown; TK_PART_WHOLE: a value that is no distribution. */
enum tk_part {
  TK_PART_WHOLE,
  TK_PART_COUNT,
  TK_PART_TOTAL,
  TK_PART_MEAN,
  TK_PART_P50,
  TK_PART_P90,
  TK_PART_P99,
  TK_PART_MAX,
  TK_PARTS
};
const char *tk_part_name(enum tk_part part); /* "p99" */

/* The name without a unit that its values show: "age_ns" is "age". */
void tk_cell_name(const Tracecollect__V1__FieldSchema *field, char out[TK_CELL_BYTES]);

/* Empty: the value is not known. Text of a traced program is made printable. A stack has no text: empty.
 * A time whose unit is one letter has a space behind it, so that digits stand in line. */
void tk_cell_text(const Tracecollect__V1__StreamReport *report,
                  const Tracecollect__V1__FieldSchema *field, const Tracecollect__V1__Value *value,
                  enum tk_part part, char out[TK_CELL_BYTES]);

/* In characters: continuation bytes of UTF-8 take no place. */
size_t tk_cell_width(const char *text);

#endif
