/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the names in a kind of report, and their meaning. */
#ifndef TK_REPORT_SCHEMA_TEXT_H
#define TK_REPORT_SCHEMA_TEXT_H

#include "tools/tracectl/report/text.h"

void tk_schema_print(const Tracecollect__V1__ReportSchema *schema,
                     const struct tk_report_style *style);

#endif
