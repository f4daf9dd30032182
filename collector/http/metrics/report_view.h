/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a few values of many published reports.
 *
 * To unpack whole reports of thousands of streams costs too much: most of a report is rows, stacks and frames. A view
 * finds all lists and unpacks only schema and figures, then the tables and stacks that a reader requests. All streams
 * have the same schema for a kind of report, which is unpacked once.
 *
 *   TB_TRY(tc_report_view_open(&view, packed));
 *   TB_TRY(tc_report_view_table(&view, "blocked_now", &table));
 *   TB_TRY(tc_report_view_stack(&view, tp_row_value(row, column)));
 *
 * pack/report_read.h reads view.report; parts that were not unpacked are missing there.
 *
 * Memory    messages are unpacked into the arena of init, which the caller resets. Schemas stay until fini. The packed
 *           bytes must stay valid until the next report is opened.
 * Errors    TB_BUDGET (also for bytes that are not a report), TB_NOMEM.
 */
#ifndef TC_HTTP_REPORT_VIEW_H
#define TC_HTTP_REPORT_VIEW_H

#include "base/arena.h"
#include "collector/analysis/report_table.h"
#include "pack/report_read.h"

enum { TC_REPORT_VIEW_SCHEMAS = 32 }; /* cached; then the last one is replaced */

struct tc_report_view {
  Tracecollect__V1__Report *report; /* allocated from arena */
  enum to_program program;          /* in whose words people read it */
  uint64_t until_wall_ns;           /* 0: unknown */
  uint64_t events, thinned_events;

  struct tb_arena *arena;
  struct tb_arena schema_arena, open_arena;
  ProtobufCBinaryData *tables, *stacks, *frames; /* packed, in order of the report's lists */
  ProtobufCBinaryData rest;                      /* packed rest of the report: stacks and frames */
  struct tc_report_view_schema {
    void *bytes;
    size_t len;
    Tracecollect__V1__ReportSchema *schema;
  } schema[TC_REPORT_VIEW_SCHEMAS];
  unsigned schemas;
};

void tc_report_view_init(struct tc_report_view *view, struct tb_mem *mem, struct tb_arena *arena);
void tc_report_view_fini(struct tc_report_view *view);

TB_MUST tb_rc tc_report_view_open(struct tc_report_view *view, const struct tc_report *packed);
/* Returns an empty table if the report does not have it. */
TB_MUST tb_rc tc_report_view_table(struct tc_report_view *view, const char *name,
                                   struct tp_table *out);
TB_MUST tb_rc tc_report_view_stack(struct tc_report_view *view,
                                   const Tracecollect__V1__Value *stack);

#endif
