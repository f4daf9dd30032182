/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline from inside: all of it is the main loop's, but for what is atomic or under a lock. */
#ifndef TC_PIPELINE_PRIVATE_H
#define TC_PIPELINE_PRIVATE_H

#include <pthread.h>

#include "collector/daemon/acceptor.h"
#include "collector/daemon/watchdog.h"
#include "collector/daemon/worker.h"
#include "collector/feed/publisher.h"
#include "collector/http/server.h"
#include "collector/pipeline.h"
#include "collector/query/session.h"

/* A drain only goes on, when the stage is done, or its share of shutdown.deadline is used up (in percent):
 *
 *           a signal            all acked (40)           all closed (50)                all analysed (60)             (70)
 *   RUNNING ────────> DRAINING ────────────────> ABORTING ───────────────> UNDERSTANDING ─────────────────> QUIETING ────> ENDED
 *
 * DRAINING sends agents away with GOAWAY; ABORTING closes the connections that are left; UNDERSTANDING waits for the
 * analyses; QUIETING stops them. Then the stages end, the store last of those that write. */
enum drain { RUNNING, DRAINING, ABORTING, UNDERSTANDING, QUIETING, ENDED };

struct tc_pipeline {
  uv_loop_t *uv;
  const struct tc_config *config;
  const char *version;
  struct tc_activation sockets; /* each its listener's, once that is open */
  struct tc_pipeline_sink sink;
  struct tc_reports *reports;
  struct tc_pauses_history *history; /* NULL: without HTTP nothing asks */
  struct tc_store *store;
  struct tc_worker **workers;
  struct tc_watchdog progress;
  unsigned count;
  atomic_uint handshakes;
  struct tc_handshake_limiter *limiter;
  struct tc_quotas *quotas;
  struct tc_recorders *recorders;
  struct tc_triggers *triggers;
  struct tc_history *kept;
  struct tc_metrics metrics;   /* the main loop's own */
  atomic_bool replies_welcome; /* workers run */

  struct tc_query *query; /* before the first question, until the store is closed */
  struct tc_feed *feed;
  struct tc_leases *leases;
  struct tc_nng_tls *nng_tls;
  struct tc_revocations *revoked;
  uint64_t warned_mono_ns; /* of what is about to expire */
  struct tc_tls_loop tls;  /* of the main loop: HTTP */
  struct tc_http *http;
  struct tc_readiness readiness;
  unsigned readiness_ticks; /* until it is looked at again */
  uint64_t started_wall_ns;
  struct tc_acceptor *acceptor;
  uv_timer_t tick;
  uv_async_t failure;
  bool handles;      /* tick and failure are open */
  uint64_t segments; /* sealed, once the store is closed */

  enum drain drain;
  uint64_t drain_began_ms;
  uint64_t deadline_mono_ns; /* the store ends its work by then; 0: it was not asked to drain */
  atomic_bool failure_taken; /* two threads may fail at once: the first one writes the text */
  atomic_bool store_failed;
  char failure_text[200]; /* written before store_failed */
};

/* --- certificates --- */

TB_MUST tb_rc tc__pipeline_name_revocations(struct tc_pipeline *p, struct tb_diag *diag);
TB_MUST tb_rc tc__pipeline_open_certificates(struct tc_pipeline *p, struct tb_diag *diag);
TB_MUST tb_rc tc__pipeline_agent_context(struct tc_pipeline *p, struct tb_diag *diag,
                                         SSL_CTX **out);
TB_MUST tb_rc tc__pipeline_reader_context(struct tc_pipeline *p, struct tb_diag *diag,
                                          SSL_CTX **out);
void tc__pipeline_order_context(struct tc_pipeline *p, SSL_CTX *ctx); /* to all loops */
void tc__pipeline_watch_certificates(struct tc_pipeline *p);          /* once a second */
void tc__pipeline_note_config(const struct tc_pipeline *p); /* what may be a slip in it */
void tc__pipeline_warn_of_expiry(struct tc_pipeline *p);

#endif
