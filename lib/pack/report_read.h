/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a Report (proto/report.proto) by name, for those who want few of them.
 *
 * Everything may be missing: a message may come from elsewhere. What is not there is NULL, 0
 * or an empty text; an index outside its list counts as not there.
 *
 * Memory    lent from the message.
 */
#ifndef TP_PACK_REPORT_READ_H
#define TP_PACK_REPORT_READ_H

#include "base/result.h"
#include "proto/report.pb-c.h"

/* r may be NULL. */
const Tracecollect__V1__Value *tp_report_figure(const Tracecollect__V1__Report *r,
                                                const char *name);
const Tracecollect__V1__Value *tp_report_option(const Tracecollect__V1__Report *r,
                                                const char *name);

struct tp_table {
  const Tracecollect__V1__Report *report;
  const Tracecollect__V1__TableSchema *schema;
  const Tracecollect__V1__Table *table; /* never NULL: an empty one */
};
/* False: there is no such table, and out is an empty one. */
bool tp_report_table(const Tracecollect__V1__Report *r, const char *name, struct tp_table *out);
/* The column's place in schema and rows; SIZE_MAX: there is none. */
size_t tp_table_column(const struct tp_table *table, const char *name);

/* Of a row, at a column's place. NULL, 0, "": not there. */
const Tracecollect__V1__Value *tp_row_value(const Tracecollect__V1__Row *row, size_t column);
int64_t tp_row_number(const Tracecollect__V1__Row *row, size_t column);
const char *tp_row_text(const Tracecollect__V1__Row *row, size_t column);
const Tracecollect__V1__Distribution *tp_row_distribution(const Tracecollect__V1__Row *row,
                                                          size_t column);

int64_t tp_value_number(const Tracecollect__V1__Value *value);
double tp_value_share(const Tracecollect__V1__Value *value);
const Tracecollect__V1__Distribution *tp_value_distribution(const Tracecollect__V1__Value *value);

/* Frames of a value's stack, innermost first: 0 to n-1. */
size_t tp_stack_length(const Tracecollect__V1__Report *r, const Tracecollect__V1__Value *value);
/* NULL beyond the end. */
const Tracecollect__V1__Frame *tp_stack_frame(const Tracecollect__V1__Report *r,
                                              const Tracecollect__V1__Value *value, size_t i);

#endif
