/* SPDX-License-Identifier: Apache-2.0 */
/* The query room over a throw-away store, without loops or agents: records go in through store_driver.h, questions are
 * asked by sessions, or by an HTTP server that is given `query`. */
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
  struct tc_query *query;
};

void tt_host_open(struct tt_host *host, unsigned generations_max); /* of one segment file */
void tt_host_close(struct tt_host *host);

/* A stream that is attached and may write; id tells streams and their instances (host-ID) apart. */
struct tt_writer tt_host_writer(struct tt_host *host, uint64_t conn, unsigned id);

#endif
