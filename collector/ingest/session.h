/* SPDX-License-Identifier: Apache-2.0 */
/* Turns an agent's clear bytes into records, and checks that they are allowed, in order and within the limits.
 *
 * An agent sends HELLO, then nothing until tc_ingest_attached(); then HEARTBEATs and records, each sequence number once and
 * in order, within the credit. A record's payload is copied once, from the read buffer to its final place, or not at all
 * (tc_ingest_room()). A record that the store has already is reported and dropped.
 *
 * Memory    one record at a time is being filled; records passed on are counted until any thread frees them
 *           (collector/ingest/record_pool.h). A control message unpacks into at most 64 KiB.
 * Threads   use each object from one thread at a time.
 * Errors    TB_AGAIN: wait for the sink, a limit or the answer to HELLO, and offer the rest again later (n may be 0).
 *           TB_PROTOCOL, TB_BUDGET: the peer's error, see diag. TB_NOMEM. Any error of the sink.
 */
#ifndef TC_INGEST_SESSION_H
#define TC_INGEST_SESSION_H

#include "collector/base/rate_limit.h"
#include "collector/store/store.h"
#include "proto/frame.pb-c.h"

/* Limits that keep a record from being started. */
enum tc_ingest_hold {
  TC_HOLD_NONE,
  TC_HOLD_MEMORY,        /* agents.records_max */
  TC_HOLD_TENANT_MEMORY, /* agents.identity_records_max */
  TC_HOLD_TENANT_SHARE,  /* the owner's share of agents.generations_max */
  TC_HOLD_TENANT_RATE,   /* agents.identity_generations_rate */
  TC_HOLD_STREAM_RATE,   /* agents.stream_generations_rate */
};

/* Messages are valid during the call. After TB_AGAIN the same message is offered again later. */
struct tc_ingest_sink {
  void *self;
  tb_rc (*hello)(void *self, const Tracecollect__V1__Hello *hello);
  tb_rc (*record)(void *self, struct tc_record *record); /* takes ownership on TB_OK only */
  void (*known)(void *self, uint64_t bytes); /* a record that the store has: ack it again */
  void (*heartbeat)(void *self, const Tracecollect__V1__Heartbeat *heartbeat);
  void (*snapped)(void *self, const Tracecollect__V1__Snapped *snapped); /* may be NULL */
};

enum tc_ingest_state { TC_INGEST_GREETING, TC_INGEST_ATTACHING, TC_INGEST_STREAMING };

struct tc_ingest {
  struct tc_ingest_sink sink;
  struct tb_diag *diag;
  size_t held_max;
  struct tc_quota *quota; /* NULL until the owner is known */
  size_t tenant_held_max;
  uint64_t stream_rate, tenant_rate; /* generations a second; 0: no limit */
  uint64_t jobs_max;                 /* of all quotas; a fast archive raises it (has_share()) */
  struct tc_rate_limit pace;         /* of this stream's jobs */
  enum tc_ingest_hold hold; /* reason of the last TB_AGAIN; NONE: the sink, or no answer to HELLO */
  uint64_t frames;          /* number of complete frames */
  enum tc_ingest_state state;
  uint64_t conn;
  uint32_t stream;
  uint64_t expected;               /* next sequence number */
  uint64_t received, credit_until; /* record bytes on this connection */
  unsigned head_len;
  bool whole; /* the record is complete and waits for the sink */
  bool bulk;  /* the last record was large */
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame;
  struct tc_record *record; /* being filled */
  uint32_t filled;
};

/* held_max: no record is started while all connections together hold more bytes; tenant_held_max: the same for connections of
 * the quota. held_max, tenant_held_max and quota may be set at any time. */
void tc_ingest_init(struct tc_ingest *in, uint64_t conn, size_t held_max,
                    struct tc_ingest_sink sink, struct tb_diag *diag);
void tc_ingest_fini(struct tc_ingest *in);

TB_MUST tb_rc tc_ingest_bytes(struct tc_ingest *in, const unsigned char *bytes, size_t n,
                              size_t *out_used);
/* Returns the size of a buffer *out into which the next bytes can be read before they are passed to tc_ingest_bytes(): the rest
 * of a large record's payload, or the next header after one. 0: none. */
size_t tc_ingest_room(struct tc_ingest *in, unsigned char **out);
/* Returns how many bytes of an incomplete frame have arrived; 0: none. */
size_t tc_ingest_begun(const struct tc_ingest *in);
/* Handles the store's answer to HELLO: accepts records after durable_seq, up to `credit` bytes. */
void tc_ingest_attached(struct tc_ingest *in, uint32_t stream, uint64_t durable_seq,
                        uint64_t credit);
void tc_ingest_credit(struct tc_ingest *in, uint64_t until);

#endif
