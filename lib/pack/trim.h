/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a report to a number of rows. */
#ifndef TP_PACK_TRIM_H
#define TP_PACK_TRIM_H

#include "proto/report.pb-c.h"

enum { TP_REPORT_ROWS_SHOWN = 20 }; /* default */

/* Cuts each table to rows (0: no cut) and sums the rest in "other". */
void tp_report_trim(Tracecollect__V1__StreamReport *report, size_t rows);

#endif
