/* SPDX-License-Identifier: Apache-2.0 */
/* Topics, their counts, and messages being joined.
 *
 * Messages of one topic, stream and generation that come within wait_ns are sent as one. The bundle begun
 * first is sent first, and TC_FEED_GENERATION is never joined: a generation's messages come
 * between its begin and its end.
 *
 * Memory    topics_max topics of some 400 bytes: beyond them the one silent for longest is forgotten, and its count
 *           starts again when it speaks again. Items belong to the bundles until they are sent.
 * Threads   use each object from one thread at a time.
 * Time      monotonic nanoseconds, the caller's.
 * Errors    add: TB_NOMEM, for a topic that is new; nothing was counted then.
 */
#ifndef TC_FEED_BATCHER_H
#define TC_FEED_BATCHER_H

#include "base/result.h"
#include "pack/topic.h"

/* A note on its way from a port to the topics; malloc. */
struct tc_feed_item {
  struct tc_feed_item *next; /* of the same bundle */
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  enum tc_feed_slot slot;
  uint32_t go_version;
  uint32_t count, missed; /* missed: messages dropped before it */
  uint64_t gen, from_wall_ns, until_wall_ns;
  uint64_t posted_mono_ns; /* by its port: its wait begins there */
  size_t len;
  unsigned char bytes[];
};

struct tc_feed_bundle_limits {
  size_t topics_max, body_bytes_max;
  uint64_t wait_ns;
  uint64_t (*wall_ns)(void); /* when a topic's count begins */
};

enum { TC_FEED_ENVELOPE_BYTES = 512 };

/* The message that is sent: topic NUL FeedMessage. */
struct tc_feed_bundle {
  const char *topic;
  size_t topic_len;  /* without the NUL */
  size_t len;        /* of all of it */
  size_t body_bytes; /* what of it came in by items */
  uint32_t messages;
  size_t envelope_len;
  unsigned char envelope[TC_FEED_ENVELOPE_BYTES];
  const struct tc_feed_item *items;
};
void tc_feed_bundle_write(const struct tc_feed_bundle *bundle, void *out); /* len bytes */

struct tc_feed_bundle_sink {
  void *self;
  void (*send)(void *self, const struct tc_feed_bundle *bundle); /* lent for the call */
};

struct tc_feed_bundles;

TB_MUST tb_rc tc_feed_bundles_new(const struct tc_feed_bundle_limits *limits,
                                  struct tc_feed_bundle_sink sink, struct tc_feed_bundles **out);
void tc_feed_bundles_free(
    struct tc_feed_bundles *bundles); /* what waits is not sent; NULL is fine */

/* Takes the item, on failure too. */
TB_MUST tb_rc tc_feed_bundles_add(struct tc_feed_bundles *bundles, struct tc_feed_item *item,
                                  uint64_t now_ns);
/* Sends what has waited long enough; answers when the next is due, UINT64_MAX: nothing waits. */
uint64_t tc_feed_bundles_flush(struct tc_feed_bundles *bundles, uint64_t now_ns);
void tc_feed_bundles_flush_all(struct tc_feed_bundles *bundles);

size_t tc_feed_bundles_topics(const struct tc_feed_bundles *bundles);

#endif
