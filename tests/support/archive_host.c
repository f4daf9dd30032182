/* SPDX-License-Identifier: Apache-2.0 */
#include "support/archive_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARCHIVE_LOOP = 1, REPORTS_BYTES_MAX = 256 << 20 };

static void give_barrier(void *self, struct tc_reply *reply) {
  struct tt_host *host = self;

  tc_query_reply(host->query, reply);
}

void tt_host_open(struct tt_host *host, unsigned generations_max) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  *host = (struct tt_host){ 0 };
  tt_store_make(&host->store);
  host->store.config.segment_generations_max = generations_max;
  host->store.elsewhere = give_barrier;
  host->store.elsewhere_self = host;
  if (tt_store_start(&host->store) != TB_OK) abort();
  if (tc_reports_new(REPORTS_BYTES_MAX, &host->reports) != TB_OK) abort();
  if (tc_recorders_new(&host->recorders) != TB_OK) abort();
  const struct tc_triggers_env triggers = { .config = &host->store.config,
                                            .state_fd = tc_store_dirfd(host->store.store),
                                            .recorders = host->recorders,
                                            .keeps = tc_store_keeps(host->store.store) };
  if (tc_triggers_open(&triggers, &diag, &host->triggers) != TB_OK) abort();

  if (tc_history_open(tc_store_dirfd(host->store.store), &host->store.config, &diag,
                      &host->history) != TB_OK)
    abort();

  const struct tc_query_env query = { .store = host->store.store,
                                      .reports = host->reports,
                                      .recorders = host->recorders,
                                      .triggers = host->triggers,
                                      .kept = host->history,
                                      .sender = ARCHIVE_LOOP,
                                      .started_wall_ns = 1000000000,
                                      .version = "9.9.9",
                                      .durable = true };
  if (tc_query_new(&query, &diag, &host->query) != TB_OK) abort();
}

void tt_host_close(struct tt_host *host) {
  tc_query_stop(host->query);
  tc_recorders_stop(host->recorders);
  tt_store_remove(&host->store);
  tc_query_free(host->query);
  tc_triggers_free(host->triggers);
  tc_history_free(host->history);
  tc_recorders_free(host->recorders);
  tc_reports_free(host->reports);
  *host = (struct tt_host){ 0 };
}

struct tt_writer tt_host_writer(struct tt_host *host, uint64_t conn, unsigned id) {
  struct tt_writer w = { .t = &host->store, .conn = conn };

  tt_attach(&host->store, conn, id, "tracecollect:agent/a");
  w.stream = tt_attached(&host->store, conn, &w.seq);
  if (w.stream == 0) abort();
  return w;
}
