/* SPDX-License-Identifier: Apache-2.0 */
/* Reads single values of a Report (proto/report.proto) by name.
 *
 * The message may come from another version, so that any part may be missing: a missing value, or an index outside its
 * list, is returned as NULL, 0 or "".
 *
 * Memory    lent from the message.
 */
#ifndef TP_PACK_REPORT_READ_H
#define TP_PACK_REPORT_READ_H

#include "base/result.h"
#include "online/words/words.h"
#include "proto/report.pb-c.h"

/* Returns the share of the events whose lengths the report has: below 1 if generations were thinned. */
double tp_report_analysed_share(const Tracecollect__V1__StreamReport *report);

/* In whose words people read a report. */
enum to_program tp_report_program(const Tracecollect__V1__StreamReport *report);
enum to_program tp_reports_program(Tracecollect__V1__StreamReport *const *report,
                                   size_t n); /* of several: C if all are */
void tp_report_set_program(Tracecollect__V1__StreamReport *report, enum to_program program);

/* r may be NULL. */
const Tracecollect__V1__Value *tp_report_figure(const Tracecollect__V1__Report *r,
                                                const char *name);
const Tracecollect__V1__Value *tp_report_option(const Tracecollect__V1__Report *r,
                                                const char *name);

enum { TP_NOTE_BYTES = 1024 }; /* of a note in other words; a longer one is cut */

struct tp_table {
  const Tracecollect__V1__Report *report;
  const Tracecollect__V1__TableSchema *schema;
  const Tracecollect__V1__Table *table; /* never NULL; may be empty */
};
/* Returns false, and an empty table in out, if there is no such table. */
bool tp_report_table(const Tracecollect__V1__Report *r, const char *name, struct tp_table *out);
/* Returns the column's index in schema and rows, or SIZE_MAX. */
size_t tp_table_column(const struct tp_table *table, const char *name);

const Tracecollect__V1__Value *tp_row_value(const Tracecollect__V1__Row *row, size_t column);
int64_t tp_row_number(const Tracecollect__V1__Row *row, size_t column);
const char *tp_row_text(const Tracecollect__V1__Row *row, size_t column);
const Tracecollect__V1__Distribution *tp_row_distribution(const Tracecollect__V1__Row *row,
                                                          size_t column);

/* Returns how long tasks or regions of a type took, of a report of either; NULL: none of that type. */
const Tracecollect__V1__Distribution *tp_report_type_latency(const Tracecollect__V1__Report *r,
                                                             const char *type);

int64_t tp_value_number(const Tracecollect__V1__Value *value);
double tp_value_share(const Tracecollect__V1__Value *value);
const Tracecollect__V1__Distribution *tp_value_distribution(const Tracecollect__V1__Value *value);

/* Number of frames in a value's stack. */
size_t tp_stack_length(const Tracecollect__V1__Report *r, const Tracecollect__V1__Value *value);
/* Returns frame i, 0 is the innermost; NULL beyond the end. */
const Tracecollect__V1__Frame *tp_stack_frame(const Tracecollect__V1__Report *r,
                                              const Tracecollect__V1__Value *value, size_t i);

#endif
