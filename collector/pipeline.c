/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the stages from right to left, so that each has its right neighbour, and ends them from left to right, so that
 * received records still pass through. */
#include "collector/pipeline_private.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/hostport.h"
#include "collector/base/logger.h"
#include "collector/daemon/acceptor.h"
#include "collector/daemon/watchdog.h"
#include "collector/daemon/worker.h"
#include "collector/feed/publisher.h"
#include "collector/http/metrics/process.h"
#include "collector/http/server.h"
#include "collector/net/tcp_listener.h"
#include "config/times.h"
#include "nng/accept.h"
#include "nng/greeting.h"
#include "tls/authority.h"
#include "tls/expiry.h"

enum {
  TICK_MS = 100,
  READINESS_TICKS = 10,
  DRAIN_TICK_MS = 10,
  REPORTS_BYTES_MAX = 256 << 20,
};

/* --- store to workers ------------------------------------------------------------------------- */

static bool on_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  struct tc_pipeline *p = self;

  if (!atomic_load(&p->replies_welcome)) return false;
  if (reply->kind == TC_REPLY_BARRIER) {
    tc_query_reply(p->query, reply);
    return true;
  }
  if (reply->kind == TC_REPLY_FAILED && !atomic_exchange(&p->failure_taken, true)) {
    snprintf(p->failure_text, sizeof p->failure_text, "%s", reply->text);
    atomic_store(&p->store_failed, true);
    uv_async_send(&p->failure);
  }
  if (reply->loop >= p->count) {
    tc_reply_free(reply);
    return true;
  }
  return tc_worker_reply(p->workers[reply->loop], from, reply);
}

static void on_note(void *self, const struct tc_note *note) {
  (void)self;
  tc_log_note("store", note);
}

static void on_failure(uv_async_t *handle) {
  struct tc_pipeline *p = handle->data;

  p->sink.failed(p->sink.self, p->failure_text);
}

/* --- HTTP's requests --------------------------------------------------------------------------- */

static const char *unhealthy(void *self) {
  struct tc_pipeline *p = self;
  struct tc_store_stats stats;

  if (p->drain != RUNNING) return "shutting down";
  if (atomic_load(&p->store_failed)) return p->failure_text;
  tc_store_stats(p->store, &stats);
  return stats.health == NULL || strcmp(stats.health, "ok") == 0 ? NULL : stats.health;
}

static void update_readiness(struct tc_pipeline *p) {
  struct tc_readiness_facts facts = { .now_wall_ns = tc_wall_ns(),
                                      .certs = p->config->top_certs,
                                      .running = p->drain == RUNNING };

  tc_store_stats(p->store, &facts.store);
  tc_readiness_update(&p->readiness, &facts);
  p->readiness_ticks = READINESS_TICKS;
}

static void readiness(void *self, struct tc_readiness *out) {
  const struct tc_pipeline *p = self;

  *out = p->readiness;
}

static tb_rc metrics(void *self, struct tb_buf *out) {
  struct tc_pipeline *p = self;
  struct tc_metrics *counts[256 + 3];
  struct tc_store_stats stats;

  for (unsigned i = 0; i < p->count; i++) counts[i] = tc_worker_metrics(p->workers[i]);
  counts[p->count] = tc_feed_metrics(p->feed);
  counts[p->count + 1] = tc_leases_metrics(p->leases);
  counts[p->count + 2] = &p->metrics;
  tc_store_stats(p->store, &stats);
  TB_TRY(tc_metrics_process(out, p->version));
  return tc_metrics_text(out, counts, p->count + 3, &stats, p->reports);
}

/* --- leases to workers ------------------------------------------------------------------------ */

static bool order_tap(void *self, unsigned loop, struct tc_event_tap_order *order) {
  struct tc_pipeline *p = self;

  return tc_worker_tap(p->workers[loop], order);
}

/* --- opening ----------------------------------------------------------------------------------- */

static tb_rc open_store(struct tc_pipeline *p, struct tb_diag *diag) {
  struct tc_store_sink sink = { p, on_reply, on_note };
  struct tc_leases_env leases = { p->config, p->count, p, order_tap, p->revoked };

  TB_TRY(tc_reports_new(REPORTS_BYTES_MAX, &p->reports));
  TB_TRY(tc_pauses_history_new(p->config->http_history_bytes, p->started_wall_ns, &p->history));
  TB_TRY(tc_feed_new(p->config, p->count, &p->feed));
  TB_TRY(tc_leases_new(&leases, diag, &p->leases));
  return tc_store_open(p->config, p->count, sink, diag, &p->store);
}

static tb_rc open_findings(struct tc_pipeline *p, struct tb_diag *diag) {
  const struct tc_findings_env env = { p->config, tc_store_dirfd(p->store),
                                       tc_store_keeps(p->store) };
  struct tb_diag wrong;

  TB_TRY(tc_findings_open(&env, diag, &wrong, &p->findings));
  if (wrong.rc != TB_OK) tc_log(TC_ERROR, "finding", "left out: %s", wrong.text);
  return TB_OK;
}

static tb_rc open_workers(struct tc_pipeline *p, struct tb_diag *diag) {
  uint64_t seed;

  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
    return tb_fail(diag, TB_IO, "getrandom: %s", strerror(errno));
  TB_TRY(tc_handshake_limiter_new(seed, &p->limiter));
  TB_TRY(tc_quotas_new(&p->quotas));
  TB_TRY(tc_recorders_new(&p->recorders));
  TB_TRY(open_findings(p, diag));
  const struct tc_triggers_env triggers = { p->config, tc_store_dirfd(p->store), p->recorders,
                                            tc_store_keeps(p->store), p->findings };
  TB_TRY(tc_triggers_open(&triggers, diag, &p->triggers));
  TB_TRY(tc_triggers_start(p->triggers));
  TB_TRY(tc_history_open(tc_store_dirfd(p->store), p->config, diag, &p->kept));
  TB_TRY(tc_history_start(p->kept));
  for (unsigned i = 0; i < p->count; i++) {
    struct tc_worker_env env = { p->config,   p->reports,     p->history, p->feed,    p->leases,
                                 p->store,    &p->handshakes, p->quotas,  p->limiter, p->recorders,
                                 p->triggers, p->findings,    p->kept,    i };

    TB_TRY(tc_worker_open(&env, &p->workers[i]));
  }
  SSL_CTX *ctx;
  TB_TRY(tc__pipeline_agent_context(p, diag, &ctx));
  tc__pipeline_order_context(p, ctx);
  SSL_CTX_free(ctx);
  for (unsigned i = 0; i < p->count; i++) TB_TRY(tc_worker_start(p->workers[i]));
  atomic_store(&p->replies_welcome, true);
  return TB_OK;
}

static void reader_refused(void *self, const char *peer, const char *why) {
  char text[TC_ESCAPE_MAX + 1];

  (void)self;
  tc_log(TC_WARN, "readers", "peer=%s: refused: %s", peer, tc_escape(text, why, strlen(why)));
}

/* Called on nng's threads. */
static void reader_turned_away(void *self, const char *peer, const char *why) {
  struct tc_pipeline *p = self;

  atomic_fetch_add_explicit(&p->metrics.readers_turned_away_total, 1, memory_order_relaxed);
  tc_log(TC_WARN, "readers", "peer=%s: turned away: %s", peer, why);
}

static tb_rc open_query(struct tc_pipeline *p, struct tb_diag *diag) {
  struct tc_query_env env = {
    .store = p->store,
    .reports = p->reports,
    .recorders = p->recorders,
    .triggers = p->triggers,
    .findings = p->findings,
    .kept = p->kept,
    .sender = p->count,
    .started_wall_ns = p->started_wall_ns,
    .version = p->version,
    .durable = strcmp(p->config->top_sync, "durable") == 0,
  };

  for (unsigned i = 0; i < TC_URLS_MAX; i++) env.feed_urls[i] = tc_feed_url(p->feed, i);
  return tc_query_new(&env, diag, &p->query);
}

static tb_rc open_readers(struct tc_pipeline *p, struct tb_diag *diag) {
  struct tc_nng_terms terms = { .server = true,
                                .peer_act = TC_ACT_FEED,
                                .refused = reader_refused,
                                .greeting_ms =
                                    (unsigned)(p->config->readers_handshake_timeout / 1000000),
                                .greeting_max =
                                    (unsigned)(p->config->readers_connections_max + 3) / 4 };
  const struct tc_nng_accept_limits limits = {
    .connections_max = (unsigned)p->config->readers_connections_max,
    .source_max = (unsigned)p->config->readers_source_connections_max,
    .descriptors_kept = TC_FDS_KEPT_FREE,
    .few = TC_FEW_PEERS,
    .turned_away = reader_turned_away,
    .self = p,
  };
  tb_rc rc;

  TB_TRY(tc__pipeline_reader_context(p, diag, &terms.ctx));
  rc = tc_nng_tls_new(&terms, diag, &p->nng_tls);
  SSL_CTX_free(terms.ctx);
  if (rc != TB_OK) return rc;

  tc_nng_accept_limit(&limits);
  tc_nng_greeting_limit(p->config->readers_handshake_timeout / 1000000);
  TB_TRY(tc_leases_start(p->leases, diag));
  TB_TRY(tc_feed_start(p->feed, p->nng_tls, diag));
  return open_query(p, diag);
}

static tb_rc open_http(struct tc_pipeline *p, struct tb_diag *diag) {
  const struct tc_config *config = p->config;
  struct tc_http_env env = {
    .tls = &p->tls,
    .address = config->listen_http,
    .path = config->listen_sock,
    .metrics_address = config->listen_metrics,
    .metrics_are_open = strcmp(config->http_metrics, "open") == 0,
    .socket = p->sockets.http.fd,
    .certs = config->top_certs,
    .revoked = p->revoked,
    .limits = { .connections_max = config->http_requests_max,
                .owner_questions_max = config->http_owner_requests_max,
                .owner_live_max = config->http_owner_live_max,
                .head_bytes_max = config->http_head_bytes_max,
                .body_bytes_max = config->http_body_bytes_max,
                .jobs_max = config->http_jobs_max,
                .owner_jobs_max = config->http_owner_jobs_max,
                .job_expire_ms = config->http_job_expire / 1000000,
                .request_ms = config->http_request_timeout / 1000000,
                .idle_ms = config->http_idle_timeout / 1000000,
                .stall_ms = config->http_stall_timeout / 1000000,
                .live_max = config->http_live_max,
                .live_bytes_max = config->http_live_bytes_max,
                .heartbeat_ms = config->http_heartbeat / 1000000,
                .timeline_bytes = config->http_timeline_bytes },
    .source = { p, metrics, unhealthy, readiness },
    .metrics = &p->metrics,
    .query = p->query,
    .leases = p->leases,
    .started_wall_ns = p->started_wall_ns,
    .feed = p->feed,
    .history = p->history,
  };

  return tc_http_open(&env, diag, &p->http);
}

/* The URL has this host's name if HTTP listens on all addresses. */
static tb_rc show_page(struct tc_pipeline *p, struct tb_diag *diag) {
  char host[HOST_NAME_MAX + 1] = "", url[HOST_NAME_MAX + TB_HOST_MAX + 32];
  struct tb_hostport where;

  if (*tc_http_address(p->http) == '\0') return TB_OK;
  TB_TRY(tb_hostport_parse(tc_http_address(p->http), diag, &where));
  bool is_any = strcmp(where.host, "0.0.0.0") == 0 || strcmp(where.host, "::") == 0;
  if (is_any) (void)gethostname(host, sizeof host - 1);
  const char *name = host[0] != '\0' ? host : where.host;
  bool is_v6 = strchr(name, ':') != NULL;
  snprintf(url, sizeof url, "%s://%s%s%s:%u", tb_host_is_loopback(where.host) ? "http" : "https",
           is_v6 ? "[" : "", name, is_v6 ? "]" : "", (unsigned)where.port);
  return tc_feed_set_page(p->feed, url);
}

static tb_rc open_agents(struct tc_pipeline *p, struct tb_diag *diag) {
  struct tc_acceptor_env env = {
    .uv = p->uv,
    .config = p->config,
    .socket = &p->sockets.agents,
    .limiter = p->limiter,
    .workers = p->workers,
    .count = p->count,
    .handshakes = &p->handshakes,
    .metrics = &p->metrics,
  };

  return tc_acceptor_open(&env, diag, &p->acceptor);
}

static void on_tick(uv_timer_t *timer) {
  struct tc_pipeline *p = timer->data;

  tc_tls_loop_tick(&p->tls);
  tc_http_tick(p->http);
  tc_nng_tls_expire();
  tc_log_overdue();
  if (p->store == NULL || --p->readiness_ticks > 0) return;
  update_readiness(p);
  if (p->drain == RUNNING) tc__pipeline_watch_certificates(p);
}

static void open_handles(struct tc_pipeline *p) {
  tc_tls_loop_init(&p->tls, p->uv);
  uv_timer_init(p->uv, &p->tick);
  uv_async_init(p->uv, &p->failure, on_failure);
  p->tick.data = p->failure.data = p;
  uv_timer_start(&p->tick, on_tick, TICK_MS, TICK_MS);
  p->handles = true;
}

static tb_rc open_stages(struct tc_pipeline *p, struct tb_diag *diag) {
  TB_TRY(tc__pipeline_name_revocations(p, diag));
  TB_TRY(open_store(p, diag));
  TB_TRY(tc__pipeline_open_certificates(p, diag));
  TB_TRY(open_workers(p, diag));
  TB_TRY(open_readers(p, diag));
  tc__pipeline_warn_of_expiry(p);
  tc__pipeline_note_config(p);
  update_readiness(p);
  TB_TRY(open_http(p, diag));
  TB_TRY(show_page(p, diag));
  return open_agents(p, diag);
}

static void end_stages(struct tc_pipeline *p);

tb_rc tc_pipeline_open(uv_loop_t *uv, const struct tc_config *config,
                       const struct tc_activation *sockets, const char *version,
                       struct tc_pipeline_sink sink, struct tb_diag *diag,
                       struct tc_pipeline **out) {
  struct tc_pipeline *p = calloc(1, sizeof *p);
  tb_rc rc = TB_NOMEM;

  if (p == NULL) return tb_fail(diag, TB_NOMEM, "out of memory");
  p->uv = uv;
  p->config = config;
  p->version = version;
  p->sockets = *sockets;
  p->sink = sink;
  p->count = (unsigned)config->top_loops;
  p->started_wall_ns = tc_wall_ns();
  open_handles(p);
  p->workers = calloc(p->count, sizeof(struct tc_worker *));
  if (p->workers != NULL) rc = open_stages(p, diag);
  if (rc == TB_OK) {
    *out = p;
    return TB_OK;
  }
  (void)tb_fail(diag, rc, "%s", tb_rc_text(rc)); /* unless the stage has given a reason */
  end_stages(p);
  uv_run(uv, UV_RUN_DEFAULT);
  tc_pipeline_free(p);
  return rc;
}

/* --- the end ----------------------------------------------------------------------------------- */

/* Workers take the store's replies until it is closed: its threads may still post. */
static void end_stages(struct tc_pipeline *p) {
  tc_acceptor_close(p->acceptor);
  tc_leases_stop(p->leases);
  tc_recorders_stop(p->recorders);
  tc_query_stop(p->query);
  tc_triggers_stop(p->triggers);
  tc_history_stop(p->kept);
  tc_feed_stop(p->feed);
  tc_nng_accept_limit(NULL);
  tc_http_close(p->http);
  tc_nng_tls_free(TB_MOVE(p->nng_tls));
  if (p->store != NULL) {
    struct tc_store_stats stats;

    tc_store_stats(p->store, &stats);
    p->segments = stats.segments_sealed;
  }
  tc_store_close_by(TB_MOVE(p->store), p->deadline_mono_ns);
  for (unsigned i = 0; p->workers != NULL && i < p->count; i++) {
    if (p->workers[i] == NULL) continue;
    tc_worker_stop(p->workers[i]);
  }
  if (p->handles) {
    tc_tls_loop_close(&p->tls);
    uv_close((uv_handle_t *)&p->tick, NULL);
    uv_close((uv_handle_t *)&p->failure, NULL);
    p->handles = false;
  }
  p->drain = ENDED;
}

static void order_all(struct tc_pipeline *p, enum tc_order_kind kind) {
  struct tc_order order = { .kind = kind };

  for (unsigned i = 0; i < p->count; i++)
    if (!tc_worker_order(p->workers[i], &order))
      tc_log(TC_ERROR, "main", "loop %u takes no orders", i);
}

static bool all_workers(struct tc_pipeline *p, bool (*is)(const struct tc_worker *)) {
  for (unsigned i = 0; i < p->count; i++)
    if (!is(p->workers[i])) return false;
  return true;
}

static bool is_empty(const struct tc_worker *st) {
  return tc_worker_connections(st) == 0;
}

/* Goes to the next state when the stage is done, or its share of the deadline, in percent, is used up. */
static void on_drain_tick(uv_timer_t *timer) {
  struct tc_pipeline *p = timer->data;
  uint64_t deadline_ms = p->config->shutdown_deadline / 1000000;
  uint64_t used = 100 * (uv_now(p->uv) - p->drain_began_ms) / (deadline_ms + 1);

  on_tick(timer);
  if (p->drain == DRAINING) {
    if (!all_workers(p, is_empty) && used < 40) return;
    order_all(p, TC_ORDER_ABORT);
    p->drain = ABORTING;
  }
  if (p->drain == ABORTING) {
    if (!all_workers(p, is_empty) && used < 50) return;
    p->drain = UNDERSTANDING;
  }
  if (p->drain == UNDERSTANDING) {
    if (!all_workers(p, tc_worker_is_idle) && used < 60) return;
    order_all(p, TC_ORDER_QUIET);
    p->drain = QUIETING;
  }
  if (!all_workers(p, tc_worker_is_quiet) && used < 70) return;
  end_stages(p);
  p->sink.ended(p->sink.self);
}

void tc_pipeline_drain(struct tc_pipeline *p) {
  if (p->drain != RUNNING) return;
  p->drain = DRAINING;
  p->drain_began_ms = uv_now(p->uv);
  p->deadline_mono_ns = tc_mono_ns() + p->config->shutdown_deadline;
  tc_acceptor_close(p->acceptor);
  order_all(p, TC_ORDER_DRAIN);
  uv_timer_start(&p->tick, on_drain_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
}

void tc_pipeline_free(struct tc_pipeline *p) {
  if (p == NULL) return;
  assert(!p->handles && "drained first");
  for (unsigned i = 0; p->workers != NULL && i < p->count; i++) tc_worker_close(p->workers[i]);
  tc_feed_free(p->feed);
  tc_http_free(p->http);
  tc_leases_free(p->leases);
  tc_query_free(p->query);
  tc_acceptor_free(p->acceptor);
  tc_handshake_limiter_free(p->limiter);
  tc_quotas_free(p->quotas);
  tc_triggers_free(p->triggers);
  tc_findings_free(p->findings);
  tc_history_free(p->kept);
  tc_recorders_free(p->recorders);
  tc_pauses_history_free(p->history);
  tc_reports_free(p->reports);
  tc_revocations_release(p->revoked);
  free(p->workers);
  free(p);
}

/* --- getters ----------------------------------------------------------------------------------- */

void tc_pipeline_addresses(const struct tc_pipeline *p, struct tc_addresses *out) {
  *out = (struct tc_addresses){
    .agents = tc_acceptor_address(p->acceptor),
    .http = tc_http_address(p->http),
    .sock = tc_http_path(p->http),
    .metrics = tc_http_metrics_address(p->http),
  };
  for (unsigned i = 0; i < TC_URLS_MAX; i++) out->feed[i] = tc_feed_url(p->feed, i);
}

/* The main loop itself is alive if it gets here. Threads that answer a reader (libuv's pool for HTTP) are not checked:
 * each may wait for a disk and delays only its own reader. nng's threads have no count of turns; if they hang, readers
 * wait, but agents do not. */
bool tc_pipeline_turns(struct tc_pipeline *p, char out_stuck[TC_THREAD_NAME_MAX + 1]) {
  static const char *const others[] = { "tc-commit", "tc-sealer",   "tc-feed",
                                        "tc-leases", "tc-triggers", "tc-history" };
  uint64_t turns[TC_WATCHDOG_THREADS_MAX];
  struct tc_store_stats stats;

  tc_store_stats(p->store, &stats);
  for (unsigned i = 0; i < p->count; i++) turns[i] = tc_worker_beats(p->workers[i]);
  turns[p->count] = stats.commit_turns;
  turns[p->count + 1] = stats.sealer_turns;
  turns[p->count + 2] = tc_feed_turns(p->feed);
  turns[p->count + 3] = tc_leases_turns(p->leases);
  turns[p->count + 4] = tc_triggers_turns(p->triggers);
  turns[p->count + 5] = tc_history_turns(p->kept);

  int stuck = tc_watchdog_stuck(&p->progress, turns, p->count + 6);
  if (stuck < 0) return true;
  if (stuck < (int)p->count)
    snprintf(out_stuck, TC_THREAD_NAME_MAX + 1, "tc-loop-%u", (unsigned)stuck % 1000);
  else
    strcpy(out_stuck, others[(unsigned)stuck - p->count]);
  return false;
}

void tc_pipeline_totals(const struct tc_pipeline *p, struct tc_totals *out) {
  *out = (struct tc_totals){ .segments = p->segments, .health = "ok" };
  if (p->store != NULL) {
    struct tc_store_stats stats;

    tc_store_stats(p->store, &stats);
    out->streams_live = stats.streams_live;
    out->health = stats.health;
  }
  for (unsigned i = 0; i < p->count; i++) {
    struct tc_metrics *m = tc_worker_metrics(p->workers[i]);

    out->connections += atomic_load(&m->connections_opened_total);
    out->records += atomic_load(&m->records_received_total);
    out->record_bytes += atomic_load(&m->record_received_bytes_total);
    out->generations += atomic_load(&m->generations_ordered_total) +
                        atomic_load(&m->generations_broken_total) +
                        atomic_load(&m->generations_left_out_total);
    out->events += atomic_load(&m->events_ordered_total);
  }
}
