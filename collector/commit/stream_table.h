/* SPDX-License-Identifier: Apache-2.0 */
/* The stream table: the writer of a stream, how far it is durable, what of it the log must keep.
 *
 * Threads   the commit thread's (the starting thread's until that runs).
 * Errors    TB_NOMEM; attach: TB_REFUSED, the stream belongs to another identity.
 */
#ifndef TC_COMMIT_STREAM_TABLE_H
#define TC_COMMIT_STREAM_TABLE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/model/reply_queue.h"
#include "collector/sealer/sealer.h"
#include "proto/log.pb-c.h"

/* So many units a stream has at most: what comes when it has them belongs to the last one. A stream that sends ends of
 * generations, or losses, and nothing that could be settled, would have one for each. */
enum { TC_UNITS_MAX = 4096 };

/* Records from one that begins a generation (or a loss, or the header) to the one that ends it. */
struct tc_unit {
  TAILQ_ENTRY(tc_unit) of_stream;
  TAILQ_ENTRY(tc_unit) in_log; /* of all that hold the log, in the order they lie there */
  struct tc_stream *stream;
  uint64_t first_lsn, last_seq;
  uint64_t asked_mono_ns; /* when the archive last got a request to give it up */
};

struct tc_stream {
  uint32_t ref;
  LIST_ENTRY(tc_stream) all;
  struct tc_stream *same_hash; /* next with the same key in the map */
  struct tc_stream_intro intro;
  bool logged; /* the log has said who it is */
  bool closed;
  uint64_t staged_seq;  /* last record taken in */
  uint64_t durable_seq; /* last record that is durable */
  uint64_t contact_wall_ns, contact_mono_ns;
  bool abandoned; /* the archive knows that it is over */

  uint64_t conn; /* 0: none; set by tc_streams_connect() */
  unsigned loop;
  bool attach_waits; /* ATTACHED is answered when what is staged is durable */
  bool ack_due;      /* in the commit's list: of who is owed an ack, that answer, or a refusal */
  struct tc_stream *ack_next;
  struct {
    uint64_t
        conn; /* 0: none; it writes the stream no more, and was not informed because memory was short */
    uint32_t code;
    const char *text;
  } refusal;
  struct tc_reply_queue_slot acked, released;

  uint64_t asked_mono_ns;              /* when a checkpoint was last asked for */
  TAILQ_HEAD(tc_units, tc_unit) units; /* what the log must keep */
  size_t nunits;
  bool unit_open;
  struct tc_unit spare; /* because memory was short */
};

struct tc_streams {
  LIST_HEAD(, tc_stream) all; /* in no order */
  TAILQ_HEAD(, tc_unit) held; /* what the log must keep, in the order it lies there */
  uint32_t next_ref;
  size_t count;
  struct tb_mem mem;
  struct tb_map by_ref, by_conn;
  struct tb_map by_id; /* first 8 bytes of the id -> struct tc_stream */
  struct tb_map
      by_identity; /* its hash -> how many streams are known; two of one hash count as one */
};

TB_MUST tb_rc tc_streams_init(struct tc_streams *streams);
void tc_streams_fini(struct tc_streams *streams); /* accepts a zeroed one */

struct tc_stream *tc_streams_by_ref(const struct tc_streams *streams, uint32_t ref);
struct tc_stream *tc_streams_by_id(const struct tc_streams *streams,
                                   const unsigned char id[TC_STREAM_BYTES]);
size_t tc_streams_of(const struct tc_streams *streams, const char identity[TC_IDENTITY_MAX]);
/* Of the streams of this name that are over, whether closed or given up, and of which the log keeps nothing: the one
 * whose last connection ended first; NULL: there is none. */
struct tc_stream *tc_streams_oldest_over(const struct tc_streams *streams,
                                         const char identity[TC_IDENTITY_MAX]);
/* ref 0: takes the next one. */
TB_MUST tb_rc tc_streams_add(struct tc_streams *streams, const struct tc_stream_intro *intro,
                             struct tc_stream **out);
void tc_streams_remove(struct tc_streams *streams, struct tc_stream *stream);

/* The connection that writes the stream from here on, instead of the one before. */
TB_MUST tb_rc tc_streams_connect(struct tc_streams *streams, struct tc_stream *stream,
                                 uint64_t conn);
void tc_streams_disconnect(struct tc_streams *streams, struct tc_stream *stream);
struct tc_stream *tc_streams_by_conn(const struct tc_streams *streams, uint64_t conn);

/* A record of the stream lies at lsn, behind all reported before; ends: it ends its unit. */
void tc_streams_hold(struct tc_streams *streams, struct tc_stream *stream, uint64_t lsn,
                     uint64_t seq, bool ends);
/* The stream's oldest unit; it ends here if it was open: what comes is held by one of its own, so that the
 * archive can settle all of this one. */
void tc_stream_end_unit(struct tc_stream *stream);
void tc_streams_settle(struct tc_streams *streams, struct tc_stream *stream,
                       const struct tc_settled *settled);
/* The stream's units begin behind the checkpoint from here on. */
void tc_streams_checkpoint(struct tc_streams *streams, struct tc_stream *stream,
                           const struct tc_checkpoint *checkpoint);
/* The log is needed from here on; UINT64_MAX: not at all. */
uint64_t tc_streams_hold_lsn(const struct tc_streams *streams);

/* Log messages; strings and bytes are borrowed from the stream. A message names its parts by address: it stays where it
 * is. */
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
