/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a set of reports on stdout: for people, as JSON, or one of their tables as CSV.
 *
 * Errors    TB_NOMEM, TB_BUDGET.
 */
#ifndef TK_REPORT_OUTPUT_H
#define TK_REPORT_OUTPUT_H

#include "tools/tracectl/report/set.h"
#include "tools/tracectl/report/text.h"

enum tk_report_form { TK_REPORT_TEXT, TK_REPORT_JSON, TK_REPORT_CSV };

/* Leaves only one table in a report. Returns false if it has no such table. */
bool tk_report_pick(Tracecollect__V1__StreamReport *report, const char *table);

/* Prints merged reports first. As CSV a list is printed by stream only: the merged one has the same rows.
 * csv_table: the table to print. source names the file; NULL: the reports are of a collector's streams. */
TB_MUST tb_rc tk_report_set_print(struct tk_report_set *set, enum tk_report_form form,
                                  const Tracecollect__V1__TableSchema *csv_table,
                                  const char *source, const struct tk_report_style *style);
TB_MUST tb_rc tk_schemas_print(Tracecollect__V1__ReportSchema *const *schemas, size_t n,
                               bool is_json, const struct tk_report_style *style);

#endif
