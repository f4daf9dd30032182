/* SPDX-License-Identifier: Apache-2.0 */
/* A report cut to the rows that a user wants to see. */
#ifndef TP_PACK_TRIM_H
#define TP_PACK_TRIM_H

#include "proto/report.pb-c.h"

enum { TP_REPORT_ROWS_SHOWN = 20 }; /* unless the caller says otherwise */

/* Cuts each table to rows (0: none is cut), the rest of them summed in "other". */
void tp_report_trim(Tracecollect__V1__StreamReport *report, size_t rows);

#endif
