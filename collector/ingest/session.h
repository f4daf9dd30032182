/* SPDX-License-Identifier: Apache-2.0 */
/* Clear bytes to records: what one agent may say, in which order, and how much.
 *
 * First HELLO, then nothing until tc_ingest_attached(); then records, each sequence number once and in
 * order, within the credit, and HEARTBEATs. A record's payload is copied once, from the read buffer to
 * where it stays until the store has written it, or not even that (tc_ingest_room()). A record that is
 * known already is answered, not kept.
 *
 * Memory    one record at a time is being filled; those handed on are counted until they are freed, by
 *           whatever thread (collector/ingest/record_pool.h). A control message unpacks into 64 KiB at most.
 * Threads   one object from one thread at a time.
 * Errors    TB_AGAIN: the sink, the limit on held bytes or the missing answer to HELLO want a pause;
 *           offer the rest again later (n may be 0). TB_PROTOCOL, TB_BUDGET: the peer's fault, see diag.
 *           TB_NOMEM. Whatever the sink answers.
 */
#ifndef TC_INGEST_SESSION_H
#define TC_INGEST_SESSION_H

#include "collector/base/rate_limit.h"
#include "collector/store/store.h"
#include "proto/frame.pb-c.h"

/* Why a record may not begin yet. */
enum tc_ingest_hold {
  TC_HOLD_NONE,
  TC_HOLD_MEMORY,        /* agents.records_max */
  TC_HOLD_TENANT_MEMORY, /* agents.identity_records_max */
  TC_HOLD_TENANT_SHARE,  /* the quota's share of agents.generations_max */
  TC_HOLD_TENANT_RATE,   /* agents.identity_generations_rate */
  TC_HOLD_STREAM_RATE,   /* agents.stream_generations_rate */
};

/* Messages are lent for the call. TB_AGAIN from any: the same is offered again later. */
struct tc_ingest_sink {
  void *self;
  tb_rc (*hello)(void *self, const Tracecollect__V1__Hello *hello);
  tb_rc (*record)(void *self, struct tc_record *record); /* owns it on TB_OK only */
  void (*known)(void *self, uint64_t bytes);             /* a record we have: ack it again */
  void (*heartbeat)(void *self, const Tracecollect__V1__Heartbeat *heartbeat);
  void (*snapped)(void *self,
                  const Tracecollect__V1__Snapped *snapped); /* NULL: there was no request */
};

enum tc_ingest_state { TC_INGEST_GREETING, TC_INGEST_ATTACHING, TC_INGEST_STREAMING };

struct tc_ingest {
  struct tc_ingest_sink sink;
  struct tb_diag *diag;
  size_t held_max;
  struct tc_quota *quota; /* NULL until it is known */
  size_t tenant_held_max;
  /* Of generations; 0: no limit. */
  uint64_t stream_rate, tenant_rate;
  uint64_t jobs_max;         /* of all quotas; more where the archive is that fast */
  struct tc_rate_limit pace; /* of this stream's jobs */
  enum tc_ingest_hold hold;  /* why the last TB_AGAIN; NONE: the sink's, or no answer to HELLO */
  uint64_t frames;           /* whole ones so far */
  enum tc_ingest_state state;
  uint64_t conn;
  uint32_t stream;
  uint64_t expected;               /* sequence number due next */
  uint64_t received, credit_until; /* record bytes on this connection */
  unsigned head_len;
  bool whole; /* record is complete and waits for the sink */
  bool bulk;  /* the last record was large */
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame;
  struct tc_record *record; /* being filled */
  uint32_t filled;
};

/* held_max: above so many bytes held by all connections no new record is begun; tenant_held_max: by those of
 * its quota, once that is set. All three may be set at any time. */
void tc_ingest_init(struct tc_ingest *in, uint64_t conn, size_t held_max,
                    struct tc_ingest_sink sink, struct tb_diag *diag);
void tc_ingest_fini(struct tc_ingest *in);

TB_MUST tb_rc tc_ingest_bytes(struct tc_ingest *in, const unsigned char *bytes, size_t n,
                              size_t *out_used);
/* Where the next bytes may be put before tc_ingest_bytes() gets them there: the rest of a large
 * record's payload, or the header that follows one. 0: nowhere. */
size_t tc_ingest_room(struct tc_ingest *in, unsigned char **out);
/* Bytes that have come of a frame that is not whole yet; 0: none is begun. */
size_t tc_ingest_begun(const struct tc_ingest *in);
/* The store's answer to HELLO: records after durable_seq may come, up to credit bytes of them. */
void tc_ingest_attached(struct tc_ingest *in, uint32_t stream, uint64_t durable_seq,
                        uint64_t credit);
void tc_ingest_credit(struct tc_ingest *in, uint64_t until);

#endif
