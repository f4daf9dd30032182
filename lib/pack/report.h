/* SPDX-License-Identifier: Apache-2.0 */
/* A report of the analyses as a packed StreamReport (proto/report.proto).
 *
 * Memory    appends to the caller's buf; temporary memory is from the same struct tb_mem and freed before the return.
 * Errors    TB_BUDGET, TB_NOMEM; then buf is unchanged.
 */
#ifndef TP_PACK_REPORT_H
#define TP_PACK_REPORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

/* The stream of the report; zeroed fields are left out. */
struct tp_report_about {
  const unsigned char *stream; /* 16 bytes */
  const char *service, *instance;
  uint64_t broken_generations;
  uint64_t ended_wall_ns;
};

/* Rows in each list of a live report. */
enum { TP_REPORT_ROWS_LIVE = 256 };

TB_MUST tb_rc tp_report_pack(struct to_analyses *analyses, enum to_analysis_kind kind,
                             enum to_window window, size_t rows_max,
                             const struct tp_report_about *about, struct tb_buf *out);
/* Returns the schema of a kind of report. Texts are lent; lists are allocated from the arena. */
TB_MUST tb_rc tp_take_schema(struct tb_arena *arena, enum to_analysis_kind kind,
                             Tracecollect__V1__ReportSchema **out);
/* Returns any schema as a message. */
TB_MUST tb_rc tp_take_schema_of(struct tb_arena *arena, const char *name, const char *about,
                                const struct to_schema *schema,
                                Tracecollect__V1__ReportSchema **out);

#endif
