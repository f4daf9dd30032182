/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by connection_table.c (the set of one loop), connection.c (one agent), connection_hold.c (its waits)
 * and connection_say.c (its answers); connection_state.c has its states and the queues in which it waits.
 *
 *                 opened             HELLO               ATTACHED              GOAWAY
 *   HANDSHAKING ──────────> GREETING ──────> ATTACHING ────────────> STREAMING ──────> DRAINING
 *        │                     │                 │                       │                │
 *        └── aborted ──────────┴── refused, aborted, or silent ──────────┴─── all acked ──┴──> CLOSING
 *
 *   any of these ── TLS reports its end ──> GONE ── the store has its DETACH, or needs none ──> freed
 *
 * An agent is read while it is GREETING and STREAMING. While it is ATTACHING, its bytes wait for the store's answer.
 * While it is DRAINING, nothing more is read and the acks that are due are still sent. CLOSING is over for the agent:
 * TLS still sends what was said and closes the socket.
 */
#ifndef TC_INGEST_CONNECTION_PRIVATE_H
#define TC_INGEST_CONNECTION_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/ingest/connection.h"
#include "collector/ingest/record_pool.h"
#include "collector/ingest/session.h"
#include "proto/frame.pb-c.h"

/* The reasons why a connection waits: a place in the store's queue; memory for the record it has begun, or its
 * quota's share of the archive, which records give back as they are freed; the time at which a rate lets it go on.
 * One that waits for the queue holds memory, so no queue may wait for another. */
enum tc__wait {
  TC__WAIT_MAILBOX,
  TC__WAIT_MEMORY,
  TC__WAIT_RATE,
  TC__WAITS,
  TC__WAIT_NONE = TC__WAITS /* in none of the set's queues */
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
  uint64_t source; /* as the limiter knows it */
  struct tc_quota *quota;
  bool open;          /* counted as a connection: the handshake was completed */
  bool attached;      /* the store knows us: a DETACH is owed */
  bool joined;        /* the recorders know us */
  enum tc__wait wait; /* not read meanwhile */
  TAILQ_ENTRY(connection) in_wait;
  bool ack_due;
  bool dirty; /* the store spoke of us since the last flush */
  struct connection *dirty_next;
  struct tc_counters greeted; /* as HELLO had them; zeroes: it had none */
  struct tc_recorder agent;   /* as HELLO had it */
  uint64_t submitted_seq, durable_seq;
  uint64_t released;            /* record bytes that left memory */
  uint64_t credit_reported;     /* last credit mark sent */
  Tracecollect__V1__Hold hold;  /* for the next ACK */
  enum tc_ingest_hold held_why; /* the last limit that held it, or memory */
  uint64_t held_from_ms;        /* the wait's begin, or the window's; 0: no limit holds it */
  uint64_t held_ms;             /* of the window that began at hold_window_ms */
  uint64_t hold_window_ms;
  uint64_t hold_window_jobs; /* tc_jobs_done() then */
  uint64_t moved_seq,
      moved_ms; /* durable_seq when a window last saw it move, or nothing to store */
  uint64_t opened_ms, heard_ms, spoke_ms;
  uint64_t frame_seen, frame_ms; /* the frame that was begun, and when it was first seen so */
  uint64_t expires_s;            /* its certificate, in Unix time; 0: no handshake yet */
  uint64_t heartbeat_ms, credit; /* as the WELCOME says: a reload is for later connections */
  char identity[TC_IDENTITY_BYTES + 1];
  char peer[64];
};

struct tc_connections {
  struct tc_connections_env env;
  struct tc__wait_queue {
    TAILQ_HEAD(, connection) list;
    size_t count;
  } waits[TC__WAITS]; /* the longest waiting first */
  uv_async_t memory;  /* records were freed */
  struct tc_records_waiter memory_waiter;
  uv_timer_t retry;
  struct tb_mem mem;
  struct tb_map by_id;
  LIST_HEAD(, connection) all;
  struct connection *dirty; /* empty between two drains of the queue */
  size_t count;
  uint64_t next_id;
  uint64_t ticked_ms; /* 0: never yet */
  bool store_failed;
};

static inline bool tc__waits(const struct connection *c) {
  return c->wait != TC__WAIT_NONE;
}
/* By a limit of its own or its quota's: it gives its turn up, as others' records may find room. */
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
/* Spread over a fifth of it, or all that came together would leave together. */
static inline uint64_t tc__spread_age(uint64_t age_ms, uint64_t id) {
  return age_ms - age_ms / 10 + id * 0x9e3779b97f4a7c15u % (age_ms / 5 + 1);
}

/* connection_say.c */
void tc__say_welcome(struct connection *c);
void tc__say_ack(struct connection *c); /* if one is due and the socket is free */
void tc__say_heartbeat(struct connection *c);
void tc__say_snap(struct connection *c, const struct tc_snap_order *order);
void tc__say_goaway(struct connection *c, const char *reason);
void tc__say_refuse(struct connection *c, Tracecollect__V1__RefuseCode code, bool permanent,
                    const char *reason); /* by name, and ends it */
void tc__end(struct connection *c, const char *why);

/* connection.c */
TB_MUST tb_rc tc__connection_open(struct connection *c, SSL_CTX *ctx, int fd); /* owns fd */
void tc__about_one(struct connection *c, const struct tc_reply *reply);
void tc__go_on_reading(struct connection *c); /* offers what waits again */
void tc__send_away(struct connection *c, const char *reason);
void tc__abort(struct connection *c, const char *why);
void tc__end_if_acked(struct connection *c); /* one that was sent away */
void tc__end_if_revoked(struct connection *c);
void tc__tick_one(struct connection *c, uint64_t now, bool stood_still);
bool tc__detach(struct connection *c); /* false: the store has no room */

/* connection_hold.c */
void tc__hold_tick(struct connection *c,
                   uint64_t now); /* reports a connection that is held half of the time */

/* connection_state.c */
void tc__connection_becomes(struct connection *c, enum tc__connection_state state);
void tc__wait_for_store(struct connection *c); /* it is offered again when there may be room */
void tc__waits_no_more(struct connection *c);
void tc__hold_end(struct connection *c); /* the time that it was held counts */
void tc__forget(struct connection *c);   /* out of the set, and its memory */

#endif
