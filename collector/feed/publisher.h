/* SPDX-License-Identifier: Apache-2.0 */
/* The live feed: what the loops find out, published while it happens.
 *
 *   loop ──note──> port ──queue──> feed thread: topics, bundles ──┬──> nng PUB: subscribers of listen.feed
 *                                                                   └──queue──> readers in this process
 *
 * A note is one or more messages of one topic, already packed: proto/feed.proto says of what. The feed's
 * thread numbers them by topic, joins small ones, and sends. nng keeps a queue for each
 * subscriber and drops the oldest when it is full; a reader of ours has a queue and loses the newest.
 * A slow subscriber never delays another: each finds the gap in the topic's count.
 *
 * ipc:// sockets get mode 0660; tls+tcp:// takes reader certificates only (tls_engine.h).
 *
 * Memory    notes on their way, all together: feed.backlog_bytes. A note that finds no room is dropped and
 *           counted, and the next one of its topic leaves room in the count. A subscriber's queue:
 *           feed.queue_bytes; nng shares the bytes of one message among all of them.
 * Threads   a thread of its own. new, start, stop, free: the main thread. publish: each port from one
 *           thread. wanted, metrics: any.
 * Errors    start: TB_IO with the URL and reason. Publishing has none.
 */
#ifndef TC_FEED_PUBLISHER_H
#define TC_FEED_PUBLISHER_H

#include "collector/feed/reader.h"
#include "collector/model/counters.h"
#include "config/table.h"
#include "nng/tls_engine.h"
#include "pack/topic.h"

struct tc_feed;

/* ports: so many threads publish. */
TB_MUST tb_rc tc_feed_new(const struct tc_config *config, unsigned ports, struct tc_feed **out);
/* From here on it listens. tls may be NULL where no URL needs it. */
TB_MUST tb_rc tc_feed_start(struct tc_feed *feed, struct tc_nng_tls *tls, struct tb_diag *diag);
/* Sends what was published before, then nothing more: notes are dropped from here on. */
void tc_feed_stop(struct tc_feed *feed); /* accepts NULL and one that was not started */
void tc_feed_free(struct tc_feed *feed); /* after the publishers' end */

/* The real URLs, in the order of listen.feed; NULL: no more. After start; any thread. */
const char *tc_feed_url(const struct tc_feed *feed, unsigned i);
struct tc_metrics *tc_feed_metrics(struct tc_feed *feed);
/* Where the collector's page is, "http://127.0.0.1:7073", for links in messages. At most once. TB_NOMEM. */
TB_MUST tb_rc tc_feed_set_page(struct tc_feed *feed, const char *url);
const char *
tc_feed_page(const struct tc_feed *feed); /* NULL: there is none, or not yet; any thread */
uint64_t
tc_feed_turns(const struct tc_feed *feed); /* of its thread, at least one a second; any thread */

/* --- publishing: the loops --- */

/* A stream, as its messages name it. It belongs to the publisher; zeroed fields are fine. */
struct tc_feed_origin {
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  uint32_t go_version;            /* 26: Go 1.26; 0: not known yet */
  uint32_t missed[TC_FEED_SLOTS]; /* the feed's: messages dropped since the last note of the slot */
};

/* Everything is lent. */
struct tc_feed_note {
  enum tc_feed_slot slot;
  uint32_t count; /* messages in bytes */
  uint64_t gen;
  uint64_t from_wall_ns, until_wall_ns; /* 0: unknown */
  const void *bytes;                    /* a packed FeedMessage with nothing but its one list */
  size_t len;
};

/* Is there a subscriber? If not, packing a note is in vain. */
bool tc_feed_wanted(const struct tc_feed *feed);
bool tc_feed_reports_wanted(const struct tc_feed *feed); /* one that takes reports? */
void tc_feed_publish(struct tc_feed *feed, unsigned port, struct tc_feed_origin *origin,
                     const struct tc_feed_note *note);
/* Messages that were not even packed (a rate was passed): a gap in the count, like any other. */
void tc_feed_miss(struct tc_feed *feed, struct tc_feed_origin *origin, enum tc_feed_slot slot,
                  uint32_t count);
/* The longest a note may be; a longer one is dropped. */
size_t tc_feed_note_bytes_max(const struct tc_feed *feed);

/* --- reading in this process: reader.h --- */

/* From here on the reader gets what is sent, while it listens. It must outlive tc_feed_stop().
 * TB_BUDGET: too many. */
TB_MUST tb_rc tc_feed_attach(struct tc_feed *feed, struct tc_feed_reader *reader);

#endif
