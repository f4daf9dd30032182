/* SPDX-License-Identifier: Apache-2.0 */
/* A report as JSON (docs/ANALYSES.md describes the form), and the schema of a kind of report.
 *
 * tp_report_json() writes the fields of the StreamReport as proto/json.h writes them, and instead of the message
 * `report` these objects by name:
 *
 *   "options": {name: value}, "figures": {name: value},
 *   "tables": {name: [{column: value}]}, "rows_total": {name: rows}
 *
 * A distribution is an object, a stack a list of frames, a flag true or false; a value that is not known is null. The
 * row that sums the rows left out has one more field: "other": true.
 *
 * Errors    those of the buffer, which keeps them (base/buf.h).
 */
#ifndef TP_PACK_REPORT_JSON_H
#define TP_PACK_REPORT_JSON_H

#include "base/buf.h"
#include "proto/report.pb-c.h"

void tp_report_json(struct tb_buf *out, const Tracecollect__V1__StreamReport *report);
void tp_schema_json(struct tb_buf *out, const Tracecollect__V1__ReportSchema *schema);
/* "distribution"; "unknown" for a type of a later version. */
const char *tp_value_type_name(Tracecollect__V1__ValueType type);

#endif
