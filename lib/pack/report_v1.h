/* SPDX-License-Identifier: Apache-2.0 */
/* What a report said before it described itself: StreamReport.syscall and .stw, made from StreamReport.report for
 * those who read them still. Goes with the next version.
 *
 * Memory    the arena's; texts, frames and distributions are the report's own.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TP_PACK_REPORT_V1_H
#define TP_PACK_REPORT_V1_H

#include "base/arena.h"
#include "proto/report.pb-c.h"

TB_MUST tb_rc tp_report_v1_fill(struct tb_arena *arena, Tracecollect__V1__StreamReport *message);

#endif
