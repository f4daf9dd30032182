/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a table of a report for people, as wide as the page, according to its schema.
 *
 * Distributions show as many parts as fit. Stacks are at the right, or below their row if there is too little room. Columns
 * without values, and flags that no row has, are left out.
 */
#ifndef TK_REPORT_TABLE_TEXT_H
#define TK_REPORT_TABLE_TEXT_H

#include "pack/report_read.h"
#include "tools/tracectl/report/text.h"

/* Prints a line of names, then the rows. */
void tk_table_rows_print(const Tracecollect__V1__StreamReport *report, const struct tp_table *table,
                         const struct tk_report_style *style);

#endif
