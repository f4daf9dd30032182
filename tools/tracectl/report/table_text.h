/* SPDX-License-Identifier: Apache-2.0 */
/* A table of a report for people, as wide as the page: its schema says what the columns are.
 *
 * Of distributions as much is shown as has room. Stacks stand at the right, or below their row where that leaves
 * them too little room. A column without any value and a flag that no row has are left out.
 */
#ifndef TK_REPORT_TABLE_TEXT_H
#define TK_REPORT_TABLE_TEXT_H

#include "pack/report_read.h"
#include "tools/tracectl/report/text.h"

/* A line of names, then the rows. */
void tk_table_rows_print(const Tracecollect__V1__StreamReport *report, const struct tp_table *table,
                         const struct tk_report_style *style);

#endif
