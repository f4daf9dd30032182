/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a value of a report for people, according to its schema. */
#ifndef TK_REPORT_CELL_H
#define TK_REPORT_CELL_H

#include <stddef.h>

#include "proto/report.pb-c.h"

enum { TK_CELL_BYTES = 1280 };

/* Part of a distribution; TK_PART_WHOLE: a value that is not a distribution. */
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

/* Returns the name without the unit, which values show: "age" for "age_ns". */
void tk_cell_name(const Tracecollect__V1__FieldSchema *field, char out[TK_CELL_BYTES]);

/* Formats a value; unknown values and stacks are empty. Text of a traced program is made printable. A
 * time whose unit is one letter is followed by a space, so that digits are aligned. */
void tk_cell_text(const Tracecollect__V1__StreamReport *report,
                  const Tracecollect__V1__FieldSchema *field, const Tracecollect__V1__Value *value,
                  enum tk_part part, char out[TK_CELL_BYTES]);

/* Counts characters: continuation bytes of UTF-8 have no width. */
size_t tk_cell_width(const char *text);

#endif
