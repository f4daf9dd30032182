/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by connection_table.c (the connections of a loop), connection.c (one connection), connection_hold.c (reports of its
 * waits), connection_say.c (its messages) and connection_state.c (its states and the queues in which it waits).
 *
 *                 opened             HELLO               ATTACHED              GOAWAY
 *   HANDSHAKING ──────────> GREETING ──────> ATTACHING ────────────> STREAMING ──────> DRAINING
 *        │                     │                 │                       │                │
 *        └── aborted ──────────┴── refused, aborted, or silent ──────────┴─── all acked ──┴──> CLOSING
 *
 *   any of these ── TLS reports its end ──> GONE ── the store has its DETACH, or needs none ──> freed
 *
 * A connection is read while GREETING and STREAMING. While ATTACHING, its bytes wait for the store's answer. While DRAINING,
 * nothing is read, but acks are still sent. While CLOSING, TLS sends what is left and closes the socket. */
#ifndef TC_INGEST_CONNECTION_PRIVATE_H
#define TC_INGEST_CONNECTION_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/ingest/connection.h"
#include "collector/ingest/record_pool.h"
#include "collector/ingest/session.h"
#include "proto/frame.pb-c.h"

/* Reasons to wait, each with a queue. A connection that waits for the mailbox holds memory, so no queue may depend on
 * another. */
enum tc__wait {
  TC__WAIT_MAILBOX, /* a slot in the store's queue */
  TC__WAIT_MEMORY,  /* memory for a record, or the owner's share of the archive */
  TC__WAIT_RATE,    /* the time at which a rate limit admits the record */
  TC__WAITS,
  TC__WAIT_NONE = TC__WAITS /* not waiting */
};

enum tc__connection_state {
  TC__HANDSHAKING,
  TC__GREETING,
  TC__ATTACHING,
  TC__STREAMING,
  TC__DRAINING,
  TC__CLOSING,
  TC__GONE,
  TC__CONNECTION_STATES
};

struct connection {
  LIST_ENTRY(connection) all;
  struct tc_connections *set;
  enum tc__connection_state state;
  struct tc_tls *tls; /* NULL: GONE */
  uint64_t id;
  struct tc_ingest ingest;
  struct tb_diag diag;
  uint64_t source; /* key in the limiter */
  struct tc_quota *quota;
  bool open;          /* the handshake was completed: counted as a connection */
  bool attached;      /* an ATTACH was submitted: a DETACH is required */
  bool joined;        /* entered in the recorders */
  enum tc__wait wait; /* not read while waiting */
  TAILQ_ENTRY(connection) in_wait;
  bool ack_due;
  bool dirty; /* the store replied since the last flush */
  struct connection *dirty_next;
  struct tc_counters greeted; /* from HELLO; zeroes: none */
  struct tc_recorder agent;   /* from HELLO */
  uint64_t submitted_seq, durable_seq;
  uint64_t released;            /* bytes of records that were freed */
  uint64_t credit_reported;     /* last credit mark sent */
  Tracecollect__V1__Hold hold;  /* for the next ACK */
  enum tc_ingest_hold held_why; /* the last limit that held the connection, or memory */
  uint64_t held_from_ms;        /* start of the wait or of the window; 0: not held by a limit */
  uint64_t held_ms;             /* time held in the window that began at hold_window_ms */
  uint64_t hold_window_ms;
  uint64_t hold_window_jobs;    /* tc_jobs_done() at hold_window_ms */
  uint64_t moved_seq, moved_ms; /* as of the last window that saw progress, or all acked */
  uint64_t opened_ms, heard_ms, spoke_ms;
  uint64_t frame_seen, frame_ms; /* number of the frame in progress; when a tick first saw it */
  uint64_t expires_s;            /* of the peer's certificate, in Unix time; 0: no handshake yet */
  uint64_t heartbeat_ms, credit; /* as in the WELCOME; a reload changes only later connections */
  char identity[TC_IDENTITY_BYTES + 1];
  char peer[64];
};

struct tc_connections {
  struct tc_connections_env env;
  struct tc__wait_queue {
    TAILQ_HEAD(, connection) list;
    size_t count;
  } waits[TC__WAITS]; /* longest waiting first */
  uv_async_t memory;  /* sent when records were freed */
  struct tc_records_waiter memory_waiter;
  uv_timer_t retry;
  struct tb_mem mem;
  struct tb_map by_id;
  LIST_HEAD(, connection) all;
  struct connection *dirty; /* connections with `dirty`; empty between two drains of the queue */
  size_t count;
  uint64_t next_id;
  uint64_t ticked_ms; /* 0: not yet */
  bool store_failed;
};

static inline bool tc__waits(const struct connection *c) {
  return c->wait != TC__WAIT_NONE;
}
/* A limit of the connection or its owner holds it: it must not block others, whose records may be admitted. */
static inline bool tc__is_limited(const struct connection *c) {
  return c->ingest.hold > TC_HOLD_MEMORY;
}
static inline bool tc__is_over(const struct connection *c) {
  return c->state >= TC__CLOSING;
}
static inline uint64_t tc__now_ms(const struct tc_connections *set) {
  return uv_now(set->env.tls->uv);
}
static inline uint64_t tc__to_ms(uint64_t ns) {
  return ns / 1000000;
}
/* Spreads an age over a fifth of it, so that connections that began together do not end together. */
static inline uint64_t tc__spread_age(uint64_t age_ms, uint64_t id) {
  return age_ms - age_ms / 10 + id * 0x9e3779b97f4a7c15u % (age_ms / 5 + 1);
}

/* connection_say.c */
void tc__say_welcome(struct connection *c);
void tc__say_ack(struct connection *c); /* if one is due and the socket is free */
void tc__say_heartbeat(struct connection *c);
void tc__say_snap(struct connection *c, const struct tc_snap_order *order);
void tc__say_goaway(struct connection *c, const char *reason);
/* Sends a REFUSE and ends the connection. */
void tc__say_refuse(struct connection *c, Tracecollect__V1__RefuseCode code, bool permanent,
                    const char *reason);
void tc__end(struct connection *c, const char *why);

/* connection.c */
TB_MUST tb_rc tc__connection_open(struct connection *c, SSL_CTX *ctx, int fd); /* owns fd */
void tc__about_one(struct connection *c, const struct tc_reply *reply);
void tc__go_on_reading(struct connection *c); /* offers the waiting record again */
void tc__send_away(struct connection *c, const char *reason);
void tc__abort(struct connection *c, const char *why);
void tc__end_if_acked(struct connection *c); /* ends a DRAINING connection after its last ack */
void tc__end_if_revoked(struct connection *c);
void tc__tick_one(struct connection *c, uint64_t now, bool stood_still);
bool tc__detach(struct connection *c); /* returns false if the store's queue is full */

/* connection_hold.c */
/* Reports a connection that was held for half of the window. */
void tc__hold_tick(struct connection *c, uint64_t now);

/* connection_state.c */
void tc__connection_becomes(struct connection *c, enum tc__connection_state state);
void tc__wait_for_store(struct connection *c); /* queues the connection for another attempt */
void tc__waits_no_more(struct connection *c);
void tc__hold_end(struct connection *c); /* adds the time of the hold to held_ms */
void tc__forget(struct connection *c);   /* removes it from the set and frees it */

#endif
