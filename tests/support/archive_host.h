/* SPDX-License-Identifier: Apache-2.0 */
/* The archive service over a throw-away store, without loops or agents: records go in through
 * store_driver.h, questions come over a real socket. One at a time in a process. */
#ifndef TT_ARCHIVE_HOST_H
#define TT_ARCHIVE_HOST_H

#include "collector/analysis/report_table.h"
#include "collector/query/server.h"
#include "support/store_driver.h"

struct tt_host {
  struct tt_store store;
  struct tc_reports *reports;
  struct tc_recorders *recorders;
  struct tc_triggers *triggers; /* no rule at first */
  struct tc_query *query;
  struct tc_archive *archive;
};

/* generations_max: of one segment file. url NULL: ipc:// in the state folder. */
void tt_host_open(struct tt_host *host, const char *url, struct tc_nng_tls *tls,
                  unsigned generations_max);
void tt_host_close(struct tt_host *host);

/* A stream that is attached and may write; id tells streams and their instances (host-ID) apart. */
struct tt_writer tt_host_writer(struct tt_host *host, uint64_t conn, unsigned id);

#endif
