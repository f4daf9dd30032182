/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's fields belong to the main loop, except those that are atomic or under a lock. */
#ifndef TC_PIPELINE_PRIVATE_H
#define TC_PIPELINE_PRIVATE_H

#include <pthread.h>

#include "base/text/cert_path.h"
#include "collector/daemon/acceptor.h"
#include "collector/daemon/watchdog.h"
#include "collector/daemon/worker.h"
#include "collector/feed/publisher.h"
#include "collector/http/server.h"
#include "collector/pipeline.h"
#include "collector/query/session.h"
#include "tls/file_state.h"

/* A drain only moves forward: when the stage is done, or its share of shutdown.deadline (in percent) is used up.
 *
 *           a signal            all acked (40)           all closed (50)                all analysed (60)             (70)
 *   RUNNING ────────> DRAINING ────────────────> ABORTING ───────────────> UNDERSTANDING ─────────────────> QUIETING ────> ENDED
 *
 * DRAINING sends GOAWAY to agents; ABORTING closes the remaining connections; UNDERSTANDING waits for the analyses; QUIETING
 * stops them. Then the stages end, in the order of end_stages(). */
enum drain { RUNNING, DRAINING, ABORTING, UNDERSTANDING, QUIETING, ENDED };

struct tc_pipeline {
  uv_loop_t *uv;
  const struct tc_config *config;
  const char *version;
  struct tc_activation sockets; /* each is owned by its listener once that is open */
  struct tc_pipeline_sink sink;
  struct tc_reports *reports;
  struct tc_pauses_history *history; /* NULL: HTTP is off */
  struct tc_store *store;
  struct tc_worker **workers;
  struct tc_watchdog progress;
  unsigned count;
  atomic_uint handshakes;
  struct tc_handshake_limiter *limiter;
  struct tc_quotas *quotas;
  struct tc_recorders *recorders;
  struct tc_findings *findings;
  struct tc_triggers *triggers;
  struct tc_history *kept;
  struct tc_metrics metrics;   /* of the main loop */
  atomic_bool replies_welcome; /* the workers run */

  struct tc_query *query; /* exists until the store is closed */
  struct tc_feed *feed;
  struct tc_leases *leases;
  struct tc_nng_tls *nng_tls;
  struct tc_revocations *revoked;
  struct tc_file_state certs_seen[TB_CERT_FILES];
  bool certs_changed;      /* since they were read */
  uint64_t warned_mono_ns; /* last warning of an expiry */
  struct tc_tls_loop tls;  /* of the main loop, for HTTP */
  struct tc_http *http;
  struct tc_readiness readiness;
  unsigned readiness_ticks; /* until the next update */
  uint64_t started_wall_ns;
  struct tc_acceptor *acceptor;
  uv_timer_t tick;
  uv_async_t failure;
  bool handles;      /* tick and failure are open */
  uint64_t segments; /* published, as of the store's end */

  enum drain drain;
  uint64_t drain_began_ms;
  uint64_t deadline_mono_ns; /* for the end of the store; 0: no drain was requested */
  atomic_bool failure_taken; /* the first thread that fails writes the text */
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
void tc__pipeline_order_context(struct tc_pipeline *p, SSL_CTX *ctx); /* sends ctx to all loops */
void tc__pipeline_watch_certificates(struct tc_pipeline *p);          /* call once a second */
void tc__pipeline_note_config(const struct tc_pipeline *p); /* logs likely mistakes in it */
void tc__pipeline_warn_of_expiry(struct tc_pipeline *p);

#endif
