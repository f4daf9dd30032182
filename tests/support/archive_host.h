/* SPDX-License-Identifier: Apache-2.0 */
/* The query room over a throw-away store, without loops or agents: records are written through store_driver.h, queries
 * come from sessions, or from an HTTP server that gets `query`. */
#ifndef TT_ARCHIVE_HOST_H
#define TT_ARCHIVE_HOST_H

#include "collector/analysis/report_table.h"
#include "collector/query/session.h"
#include "support/store_driver.h"

struct tt_host {
  struct tt_store store;
  struct tc_reports *reports;
  struct tc_recorders *recorders;
  struct tc_triggers *triggers; /* no rule at first */
  struct tc_history *history;   /* empty at first, and without its thread */
  struct tc_query *query;
};

void tt_host_open(struct tt_host *host, unsigned generations_max); /* of one segment file */
void tt_host_close(struct tt_host *host);

/* Attaches a stream that may write; `id` makes streams and their instances (host-ID) differ. */
struct tt_writer tt_host_writer(struct tt_host *host, uint64_t conn, unsigned id);

#endif
