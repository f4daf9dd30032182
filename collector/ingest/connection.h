/* SPDX-License-Identifier: Apache-2.0 */
/* The agent connections of one loop: TLS below, sessions above, and between them the messages of docs/PROTOCOL.md: WELCOME,
 * acks with credit, heartbeats, REFUSE, GOAWAY.
 *
 * Acks are merged: the store's replies of one drain of the queue become one ACK for each connection (tc_connections_flush()).
 * While the store is behind, a connection is not read: it waits in a queue until the store replies or a record is freed.
 * A connection that breaks the protocol gets a REFUSE and lingers (collector/net/tls_connection.h); others are not
 * affected.
 *
 * Memory    a connection takes about 600 bytes and its TLS; records are counted by collector/ingest/session.h.
 * Threads   all calls on the loop's thread.
 * Errors    none are returned: a connection's errors are logged and counted in metrics.
 */
#ifndef TC_INGEST_CONNECTION_H
#define TC_INGEST_CONNECTION_H

#include "collector/ingest/handshake_limiter.h"
#include "collector/ingest/quota.h"
#include "collector/ingest/recorders.h"
#include "collector/model/counters.h"
#include "collector/net/tls_connection.h"
#include "collector/store/store.h"

struct tc_connections;

struct tc_submit_sink {
  void *self;
  bool (*submit)(void *self, struct tc_submit *msg); /* owns msg; false: full, try later */
};

struct tc_connections_env {
  struct tc_tls_loop *tls;
  const struct tc_config *config;
  struct tc_metrics *metrics;
  struct tc_submit_sink store;
  /* Returns the shortage that the store's log or archive waits for. May be NULL. */
  enum tc_shortage (*shortage)(const void *self, bool of_log);
  const void *shortage_self;
  unsigned loop;                        /* number of the loop, to which replies are sent */
  struct tc_quotas *quotas;             /* shared by all loops */
  struct tc_handshake_limiter *limiter; /* admitted the handshakes; NULL: none */
  struct tc_recorders *recorders;       /* source of requests for snaps; NULL: none */
};

TB_MUST tb_rc tc_connections_new(const struct tc_connections_env *env, struct tc_connections **out);
/* Closes the set's handles. No connection may be left. Call free() after the loop's last turn. */
void tc_connections_close(struct tc_connections *set);
void tc_connections_free(struct tc_connections *set);

/* Takes ownership of fd. peer: address for people; source: entered in the limiter, left after the handshake. */
void tc_connections_accept(struct tc_connections *set, SSL_CTX *ctx, int fd, const char *peer,
                           uint64_t source);
/* Handles a reply about one connection, or all (FAILED). Borrows reply. */
void tc_connections_reply(struct tc_connections *set, const struct tc_reply *reply);
void tc_connections_flush(struct tc_connections *set); /* sends the acks that are due */
void tc_connections_tick(struct tc_connections *set);  /* heartbeats, time-outs, snaps */

/* Sends GOAWAY, stops reading, and closes each connection after its records are acked. */
void tc_connections_drain(struct tc_connections *set, const char *reason);
void tc_connections_abort(struct tc_connections *set);
/* Ends connections whose certificate is revoked, at once. */
void tc_connections_recheck(struct tc_connections *set);
size_t tc_connections_count(const struct tc_connections *set); /* includes waiting DETACHes */

#endif
