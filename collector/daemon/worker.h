/* SPDX-License-Identifier: Apache-2.0 */
/* One loop with what lives on it: its agents' connections and its streams' understanding.
 *
 *   main, leases ──orders──> worker <──replies── store
 *
 * Memory    owns its loop, connections, understanding and counters.
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
  atomic_uint *handshakes; /* at this moment, of all workers */
  struct tc_quotas *quotas;
  struct tc_handshake_limiter *limiter;
  struct tc_recorders *recorders;
  struct tc_triggers *triggers;
  struct tc_history *kept; /* reports; NULL: none are */
  unsigned number; /* its loop's, and its sender's at the store */
};

TB_MUST tb_rc tc_worker_open(const struct tc_worker_env *env, struct tc_worker **out);
TB_MUST tb_rc tc_worker_start(struct tc_worker *worker);
void tc_worker_stop(struct tc_worker *worker);  /* any thread */
void tc_worker_close(struct tc_worker *worker); /* joins a started and stopped one; NULL is fine */

enum tc_order_kind {
  TC_ORDER_ACCEPT,  /* fd, peer: a new connection */
  TC_ORDER_CONTEXT, /* context: for connections from here on */
  TC_ORDER_IDLE,    /* text: a new value of analysis.idle */
  TC_ORDER_RECHECK, /* certificates were taken back: end whose they are */
  TC_ORDER_DRAIN,   /* say GOAWAY, see that what was taken is acked, close */
  TC_ORDER_ABORT,   /* close what is still open */
  TC_ORDER_QUIET,   /* submit nothing more to the store */
};

enum { TC_ORDER_MAGIC = 0x04de4405 };

struct tc_order {
  enum tc_order_kind kind;
  int fd;
  char peer[64];
  uint64_t source;  /* the limiter's */
  SSL_CTX *context; /* counted */
  char *text;
  uint32_t magic; /* TC_ORDER_MAGIC; tc_order_new() sets it */
};

struct tc_order *tc_order_new(const struct tc_order *like); /* NULL: no memory */
void tc_order_free(struct tc_order *order);                 /* closes nothing that the order holds */

/* Owns what the order holds, if it answers true; false: no room or no memory. */
bool tc_worker_order(struct tc_worker *worker, const struct tc_order *order);
/* Takes reply over when it answers true. */
bool tc_worker_reply(struct tc_worker *worker, enum tc_from from, struct tc_reply *reply);

/* From the leases' thread. Takes order over when it answers true. */
bool tc_worker_tap(struct tc_worker *worker, struct tc_event_tap_order *order);

struct tc_metrics *tc_worker_metrics(struct tc_worker *worker);
size_t tc_worker_connections(const struct tc_worker *worker);
bool tc_worker_is_idle(const struct tc_worker *worker);  /* no generation waits */
bool tc_worker_is_quiet(const struct tc_worker *worker); /* the order was carried out */
uint64_t tc_worker_beats(const struct tc_worker *worker);

#endif
