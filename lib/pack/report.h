/* SPDX-License-Identifier: Apache-2.0 */
/* A report of the analyses as a packed StreamReport (proto/report.proto), from a file as live.
 *
 * Memory    appends to the caller's buf; what it builds on the way comes from the same struct
 *           tb_mem and is given back before it returns.
 * Errors    TB_BUDGET, TB_NOMEM; buf is then as it was.
 */
#ifndef TP_PACK_REPORT_H
#define TP_PACK_REPORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

/* The stream of these figures; zeroed fields stay empty. */
struct tp_report_about {
  const unsigned char *stream; /* 16 bytes */
  const char *service, *instance;
  uint64_t broken_generations;
};

/* Rows in each list of a live report: what a reader sees of a stream, and the bound of its message.
 */
enum { TP_REPORT_ROWS_LIVE = 256 };

TB_MUST tb_rc tp_report_pack(struct to_analyses *analyses, enum to_analysis_kind kind,
                             enum to_window window, size_t rows_max,
                             const struct tp_report_about *about, struct tb_buf *out);
/* What a kind of report holds, without a report. Lent texts; the lists are the arena's. */
TB_MUST tb_rc tp_take_schema(struct tb_arena *arena, enum to_analysis_kind kind,
                             Tracecollect__V1__ReportSchema **out);
/* The same of any schema. */
TB_MUST tb_rc tp_take_schema_of(struct tb_arena *arena, const char *name, const char *about,
                                const struct to_schema *schema,
                                Tracecollect__V1__ReportSchema **out);

#endif
