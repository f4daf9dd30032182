/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a table of a report as CSV (RFC 4180), with numbers as in JSON.
 *
 * A distribution `calls` has ten cells: calls_count, calls_total_ns, calls_min_ns, calls_max_ns, four quantiles,
 * calls_error_share, and calls_lower_bounds. A stack has one: "FUNCTION FILE:LINE" of each frame, innermost first, separated by "; ".
 * An unknown value is an empty cell. The last column, "other", is true in the row that sums the rows left
 * out; a list has neither that row nor that column. Unprintable characters become question marks.
 */
#ifndef TK_REPORT_CSV_H
#define TK_REPORT_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/report.pb-c.h"

/* is_live: lines begin with the stream's service and instance. */
void tk_csv_head(FILE *out, const Tracecollect__V1__TableSchema *head, bool is_live);
/* Writes the report's table of that name, with the columns of the head. */
void tk_csv_rows(FILE *out, const Tracecollect__V1__StreamReport *report,
                 const Tracecollect__V1__TableSchema *head, bool is_live);

#endif
