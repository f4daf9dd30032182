/* SPDX-License-Identifier: Apache-2.0 */
/* The stream table: each stream's connection, how far it is durable, and which of its records the log must keep.
 *
 * Threads   the commit thread's (the starting thread's before it runs).
 * Errors    TB_NOMEM; attach: TB_REFUSED, the stream belongs to another identity.
 */
#ifndef TC_COMMIT_STREAM_TABLE_H
#define TC_COMMIT_STREAM_TABLE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/model/reply_queue.h"
#include "collector/sealer/sealer.h"
#include "proto/log.pb-c.h"

/* Maximum number of units of a stream; further records join the last unit. (A stream that sends only ends of generations
 * or losses, which cannot be settled, would otherwise have one for each.) */
enum { TC_UNITS_MAX = 4096 };

/* Records from one that begins a generation (or a loss, or the header) to the one that ends it. */
struct tc_unit {
  TAILQ_ENTRY(tc_unit) of_stream;
  TAILQ_ENTRY(tc_unit) in_log; /* in tc_streams.held */
  struct tc_stream *stream;
  uint64_t first_lsn, last_seq;
  uint64_t asked_mono_ns; /* when the sealer was last requested to give it up */
};

struct tc_stream {
  uint32_t ref;
  LIST_ENTRY(tc_stream) all;
  struct tc_stream *same_hash; /* next with the same key in the map */
  struct tc_stream_intro intro;
  bool logged; /* the log has its identity */
  bool closed;
  uint64_t staged_seq;  /* last record accepted */
  uint64_t durable_seq; /* last record that is durable */
  uint64_t contact_wall_ns, contact_mono_ns;
  bool abandoned; /* reported to the sealer as over */

  uint64_t conn; /* 0: none; set by tc_streams_connect() */
  unsigned loop;
  bool attach_waits; /* the answer ATTACHED is sent after all staged records are durable */
  bool ack_due;      /* in the list commit->acks: an ack, that answer or a refusal is due */
  struct tc_stream *ack_next;
  struct {         /* a refusal that could not be sent for lack of memory */
    uint64_t conn; /* no longer the stream's; 0: none */
    uint32_t code;
    const char *text;
  } refusal;
  struct tc_reply_queue_slot acked, released;

  uint64_t asked_mono_ns;              /* when a checkpoint was last requested */
  TAILQ_HEAD(tc_units, tc_unit) units; /* records that the log must keep */
  size_t nunits;
  bool unit_open;
  struct tc_unit spare; /* the first unit if it cannot be allocated */
};

struct tc_streams {
  LIST_HEAD(, tc_stream) all; /* in no order */
  TAILQ_HEAD(, tc_unit) held; /* units that the log must keep, in its order */
  uint32_t next_ref;
  size_t count;
  struct tb_mem mem;
  struct tb_map by_ref, by_conn;
  struct tb_map by_id;       /* first 8 bytes of the id -> struct tc_stream */
  struct tb_map by_identity; /* hash of the owner -> number of streams (collisions share one) */
};

TB_MUST tb_rc tc_streams_init(struct tc_streams *streams);
void tc_streams_fini(struct tc_streams *streams); /* accepts a zeroed one */

struct tc_stream *tc_streams_by_ref(const struct tc_streams *streams, uint32_t ref);
struct tc_stream *tc_streams_by_id(const struct tc_streams *streams,
                                   const unsigned char id[TC_STREAM_BYTES]);
size_t tc_streams_of(const struct tc_streams *streams, const char identity[TC_IDENTITY_MAX]);
/* Finds the owner's stream that is over (closed or given up), of which the log keeps nothing, and whose last connection ended
 * first; NULL: none. */
struct tc_stream *tc_streams_oldest_over(const struct tc_streams *streams,
                                         const char identity[TC_IDENTITY_MAX]);
/* ref 0: takes the next one. */
TB_MUST tb_rc tc_streams_add(struct tc_streams *streams, const struct tc_stream_intro *intro,
                             struct tc_stream **out);
void tc_streams_remove(struct tc_streams *streams, struct tc_stream *stream);

/* Sets the connection that writes the stream, instead of an earlier one. */
TB_MUST tb_rc tc_streams_connect(struct tc_streams *streams, struct tc_stream *stream,
                                 uint64_t conn);
void tc_streams_disconnect(struct tc_streams *streams, struct tc_stream *stream);
struct tc_stream *tc_streams_by_conn(const struct tc_streams *streams, uint64_t conn);

/* Holds a record of the stream at lsn, which rises from call to call; ends: the record ends its unit. */
void tc_streams_hold(struct tc_streams *streams, struct tc_stream *stream, uint64_t lsn,
                     uint64_t seq, bool ends);
/* Ends the stream's oldest unit if it is open: further records get a unit of their own, so that the archive can settle
 * all of this one. */
void tc_stream_end_unit(struct tc_stream *stream);
void tc_streams_settle(struct tc_streams *streams, struct tc_stream *stream,
                       const struct tc_settled *settled);
/* Releases what is before the checkpoint in the log. */
void tc_streams_checkpoint(struct tc_streams *streams, struct tc_stream *stream,
                           const struct tc_checkpoint *checkpoint);
/* Returns the LSN from which on the log is needed; UINT64_MAX: not at all. */
uint64_t tc_streams_hold_lsn(const struct tc_streams *streams);

/* Log messages, which borrow strings and bytes from the stream. A message points into itself and must not be copied. */
struct tc_settled_message {
  Tracecollect__V1__LogSettled settled;
  Tracecollect__V1__ContentHash hash;
};
void tc_stream_to_log(struct tc_stream *stream, Tracecollect__V1__LogStream *out,
                      struct tc_settled_message *settled);
void tc_settled_to_log(struct tc_settled *settled, struct tc_settled_message *out);
void tc_settled_from_log(const Tracecollect__V1__LogSettled *in, uint32_t ref,
                         struct tc_settled *out);
TB_MUST tb_rc tc_intro_from_log(const Tracecollect__V1__LogStream *in, unsigned loops,
                                struct tc_stream_intro *out);

#endif
