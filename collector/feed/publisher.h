/* SPDX-License-Identifier: Apache-2.0 */
/* The live feed: publishes what the loops find while programs run.
 *
 *   loop ──note──> port ──queue──> feed thread: topics, bundles ──┬──> nng PUB: subscribers of listen.feed
 *                                                                   └──queue──> readers in this process
 *
 * A note is one or more packed messages of one topic (proto/feed.proto). The feed's thread numbers them by topic, joins
 * small ones, and sends them. nng keeps a queue for each subscriber and drops the oldest message when it is full; a reader
 * in this process has a queue that drops the newest. A slow subscriber never delays another, and sees the gap in the
 * topic's sequence.
 *
 * ipc:// sockets get mode 0660; tls+tcp:// accepts reader certificates only (tls_engine.h).
 *
 * Memory    notes in transit, all together: feed.backlog_bytes. A note for which there is no room is dropped and counted;
 *           the next one of its topic skips its numbers. A subscriber's queue: feed.queue_bytes; nng shares the bytes
 *           of a message among all subscribers.
 * Threads   a thread of its own. new, start, stop, free: the main thread. publish: each port from one
 *           thread. wanted, metrics: any.
 * Errors    start: TB_IO with the URL and reason. Publishing cannot fail.
 */
#ifndef TC_FEED_PUBLISHER_H
#define TC_FEED_PUBLISHER_H

#include "collector/feed/reader.h"
#include "collector/model/counters.h"
#include "config/table.h"
#include "nng/tls_engine.h"
#include "pack/topic.h"

struct tc_feed;

/* ports: number of publishing threads. */
TB_MUST tb_rc tc_feed_new(const struct tc_config *config, unsigned ports, struct tc_feed **out);
/* Starts listening. tls may be NULL if no URL needs it. */
TB_MUST tb_rc tc_feed_start(struct tc_feed *feed, struct tc_nng_tls *tls, struct tb_diag *diag);
/* Sends what was published before; later notes are dropped. */
void tc_feed_stop(struct tc_feed *feed); /* accepts NULL and a feed that was not started */
void tc_feed_free(struct tc_feed *feed); /* call when no publisher is left */

/* Returns the i-th URL with its real port, in the order of listen.feed; NULL after the last. Call after
 * start; any thread. */
const char *tc_feed_url(const struct tc_feed *feed, unsigned i);
struct tc_metrics *tc_feed_metrics(struct tc_feed *feed);
/* Sets the address of the collector's page, "http://127.0.0.1:7073", for links in messages. Call at most
 * once. TB_NOMEM. */
TB_MUST tb_rc tc_feed_set_page(struct tc_feed *feed, const char *url);
const char *tc_feed_page(const struct tc_feed *feed); /* NULL: none so far; any thread */
/* Turns of the feed's thread, at least one a second; any thread. */
uint64_t tc_feed_turns(const struct tc_feed *feed);

/* --- publishing: the loops --- */

/* A stream, as its messages name it. Owned by the publisher; begins zeroed. */
struct tc_feed_origin {
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  uint32_t go_version;            /* 26: Go 1.26; 0: not known yet */
  uint32_t missed[TC_FEED_SLOTS]; /* messages dropped since the slot's last note; set by the feed */
};

/* Pointers are lent for the call. */
struct tc_feed_note {
  enum tc_feed_slot slot;
  uint32_t count; /* messages in bytes */
  uint64_t gen;
  uint64_t from_wall_ns, until_wall_ns; /* 0: unknown */
  const void *bytes;                    /* a packed FeedMessage with only its list */
  size_t len;
};

/* Return true if a subscriber takes messages, or reports; otherwise notes need not be packed. */
bool tc_feed_wanted(const struct tc_feed *feed);
bool tc_feed_reports_wanted(const struct tc_feed *feed);
void tc_feed_publish(struct tc_feed *feed, unsigned port, struct tc_feed_origin *origin,
                     const struct tc_feed_note *note);
/* Counts messages that were not packed, such as those above a rate, as a gap. */
void tc_feed_miss(struct tc_feed *feed, struct tc_feed_origin *origin, enum tc_feed_slot slot,
                  uint32_t count);
/* Returns the largest size of a note; larger ones are dropped. */
size_t tc_feed_note_bytes_max(const struct tc_feed *feed);

/* --- reading in this process: reader.h --- */

/* From now on the reader receives what is sent, while it listens. It must outlive tc_feed_stop().
 * TB_BUDGET: too many readers. */
TB_MUST tb_rc tc_feed_attach(struct tc_feed *feed, struct tc_feed_reader *reader);

#endif
