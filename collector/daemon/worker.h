/* SPDX-License-Identifier: Apache-2.0 */
/* One loop with its agents' connections and the analysis of its streams.
 *
 *   main, leases ──orders──> worker <──replies── store
 *
 * Memory    owns its loop, connections, scheduler and counters.
 * Threads   open and close on the main thread, while the loop does not run; order from the main thread,
 *           tap from the leases', reply from the store's. The plain reads below are safe from any.
 * Errors    open: TB_IO, TB_NOMEM.
 */
#ifndef TC_DAEMON_WORKER_H
#define TC_DAEMON_WORKER_H

#include "collector/analysis/scheduler.h"
#include "collector/ingest/connection.h"
#include "collector/net/event_loop.h"

struct tc_worker;

struct tc_worker_env {
  const struct tc_config *config;
  struct tc_reports *reports;
  struct tc_pauses_history *history;
  struct tc_feed *feed;
  struct tc_leases *leases;
  struct tc_store *store;
  atomic_uint *handshakes; /* running handshakes of all workers */
  struct tc_quotas *quotas;
  struct tc_handshake_limiter *limiter;
  struct tc_recorders *recorders;
  struct tc_triggers *triggers;
  struct tc_findings *findings;
  struct tc_history *kept; /* NULL: reports are not archived */
  unsigned number;         /* of its loop, and of this sender at the store */
};

TB_MUST tb_rc tc_worker_open(const struct tc_worker_env *env, struct tc_worker **out);
TB_MUST tb_rc tc_worker_start(struct tc_worker *worker);
void tc_worker_stop(struct tc_worker *worker);  /* any thread */
void tc_worker_close(struct tc_worker *worker); /* joins a stopped one; NULL is fine */

enum tc_order_kind {
  TC_ORDER_ACCEPT,  /* fd, peer: a new connection */
  TC_ORDER_CONTEXT, /* context: for connections from now on */
  TC_ORDER_IDLE,    /* text: a new value of analysis.idle */
  TC_ORDER_RECHECK, /* certificates were revoked: end their connections */
  TC_ORDER_DRAIN,   /* send GOAWAY, wait until received records are acked, close */
  TC_ORDER_ABORT,   /* close all connections */
  TC_ORDER_QUIET,   /* submit nothing more to the store */
};

enum { TC_ORDER_MAGIC = 0x04de4405 };

struct tc_order {
  enum tc_order_kind kind;
  int fd;
  char peer[64];
  uint64_t source;  /* for the limiter */
  SSL_CTX *context; /* holds a reference */
  char *text;
  uint32_t magic; /* TC_ORDER_MAGIC; set by tc_order_new() */
};

struct tc_order *tc_order_new(const struct tc_order *like); /* NULL: out of memory */
void tc_order_free(struct tc_order *order);                 /* but not the objects it refers to */

/* Returns true and owns what the order refers to, or false if there is no room or memory. */
bool tc_worker_order(struct tc_worker *worker, const struct tc_order *order);
/* Returns true and owns reply, or false if there is no room. */
bool tc_worker_reply(struct tc_worker *worker, enum tc_from from, struct tc_reply *reply);

/* Called on the leases' thread. Returns true and owns order, or false if there is no room. */
bool tc_worker_tap(struct tc_worker *worker, struct tc_event_tap_order *order);

struct tc_metrics *tc_worker_metrics(struct tc_worker *worker);
size_t tc_worker_connections(const struct tc_worker *worker);
bool tc_worker_is_idle(const struct tc_worker *worker);  /* no generation is queued */
bool tc_worker_is_quiet(const struct tc_worker *worker); /* TC_ORDER_QUIET was carried out */
uint64_t tc_worker_beats(const struct tc_worker *worker);

#endif
