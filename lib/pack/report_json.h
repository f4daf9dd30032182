/* SPDX-License-Identifier: Apache-2.0 */
/* A report as JSON (docs/ANALYSES.md describes the form), and the schema of a kind of report.
 *
 * tp_report_json() writes the fields of the StreamReport like proto/json.h, but replaces the message `report` by:
 *
 *   "options": {name: value}, "figures": {name: value},
 *   "tables": {name: [{column: value}]}, "rows_total": {name: rows}
 *
 * A distribution is an object, a stack a list of frames, a flag true or false, an unknown value null. The row with the
 * sum of the omitted rows has one more field: "other": true.
 *
 * Errors    stored in the buffer (base/buf.h).
 */
#ifndef TP_PACK_REPORT_JSON_H
#define TP_PACK_REPORT_JSON_H

#include "base/buf.h"
#include "proto/report.pb-c.h"

void tp_report_json(struct tb_buf *out, const Tracecollect__V1__StreamReport *report);
void tp_schema_json(struct tb_buf *out, const Tracecollect__V1__ReportSchema *schema);
/* Returns a name such as "distribution"; "unknown" for a type of a later version. */
const char *tp_value_type_name(Tracecollect__V1__ValueType type);

#endif
