/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of one loop: TLS below, ingest above, and between them the conversation of
 * docs/PROTOCOL.md: WELCOME, acks with credit, heartbeats, REFUSE, GOAWAY.
 *
 * Answers are coalesced: what the store said in one drain of its queue becomes one ACK a connection
 * (tc_connections_flush()). While the store is behind, a connection is not read: it waits in a queue
 * until the store has answered or a record was freed. A connection that does wrong is refused by name and lingers
 * (collector/net/tls_connection.h); no other connection notices.
 *
 * Memory    a connection is some 600 bytes and its TLS; records are counted by collector/ingest/session.h.
 * Threads   all calls on the loop's thread.
 * Errors    none leave here: what happens to a connection ends in its log line and in metrics.
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
  bool (*submit)(void *self, struct tc_submit *msg); /* owns msg when true; false: again later */
};

struct tc_connections_env {
  struct tc_tls_loop *tls;
  const struct tc_config *config;
  struct tc_metrics *metrics;
  struct tc_submit_sink store;
  /* The shortage that the store's log or archive wait for; NULL: it is not known. */
  enum tc_shortage (*shortage)(const void *self, bool of_log);
  const void *shortage_self;
  unsigned loop;                        /* its number: replies come back by it */
  struct tc_quotas *quotas;             /* all loops' */
  struct tc_handshake_limiter *limiter; /* where handshakes were let in; NULL: there is none */
  struct tc_recorders *recorders;       /* where snaps are requested from agents; NULL: nowhere */
};

TB_MUST tb_rc tc_connections_new(const struct tc_connections_env *env, struct tc_connections **out);
/* None may be left. Closes its handles: free() after the loop's last turn. */
void tc_connections_close(struct tc_connections *set);
void tc_connections_free(struct tc_connections *set);

/* Owns fd. peer: address for people; source: what the limiter let in, left when the handshake is over. */
void tc_connections_accept(struct tc_connections *set, SSL_CTX *ctx, int fd, const char *peer,
                           uint64_t source);
/* About one of them, or about all (FAILED). reply is lent. */
void tc_connections_reply(struct tc_connections *set, const struct tc_reply *reply);
void tc_connections_flush(struct tc_connections *set); /* sends the acks that are due */
void tc_connections_tick(struct tc_connections *set);  /* heartbeats, time-outs, snaps */

/* Says GOAWAY, reads no more, and closes each once what it sent is acked. */
void tc_connections_drain(struct tc_connections *set, const char *reason);
void tc_connections_abort(struct tc_connections *set);
/* Ends those whose certificate has been taken back, at once. */
void tc_connections_recheck(struct tc_connections *set);
size_t tc_connections_count(const struct tc_connections *set); /* DETACHes that wait included */

#endif
