/* SPDX-License-Identifier: Apache-2.0 */
/* Topics, their sequence numbers, and bundles of messages.
 *
 * Messages of one topic, stream and generation that arrive within wait_ns are sent as one. The oldest bundle is
 * sent first, and TC_FEED_GENERATION is never joined: a generation's messages are sent between its begin and end.
 *
 * Memory    topics_max topics of some 400 bytes: above that the one silent for longest is forgotten; if it resumes,
 *           it counts from 1 again. Items belong to the bundles until they are sent.
 * Threads   use each object from one thread at a time.
 * Time      monotonic nanoseconds, passed in.
 * Errors    add: TB_NOMEM, for a new topic; nothing was counted then.
 */
#ifndef TC_FEED_BATCHER_H
#define TC_FEED_BATCHER_H

#include "base/result.h"
#include "pack/topic.h"

/* A note in transit from a port to its topic; allocated with malloc. */
struct tc_feed_item {
  struct tc_feed_item *next; /* in the same bundle */
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  enum tc_feed_slot slot;
  uint32_t go_version;
  uint32_t count, missed; /* missed: messages dropped before it */
  uint64_t gen, from_wall_ns, until_wall_ns;
  uint64_t posted_mono_ns; /* set by its port: the wait begins then */
  size_t len;
  unsigned char bytes[];
};

struct tc_feed_bundle_limits {
  size_t topics_max, body_bytes_max;
  uint64_t wait_ns;
  uint64_t (*wall_ns)(void); /* start of a topic's count */
};

enum { TC_FEED_ENVELOPE_BYTES = 512 };

/* The message that is sent: topic, NUL, FeedMessage. */
struct tc_feed_bundle {
  const char *topic;
  size_t topic_len;  /* without the NUL */
  size_t len;        /* of the whole message */
  size_t body_bytes; /* bytes of the items */
  uint32_t messages;
  size_t envelope_len;
  unsigned char envelope[TC_FEED_ENVELOPE_BYTES];
  const struct tc_feed_item *items;
};
void tc_feed_bundle_write(const struct tc_feed_bundle *bundle, void *out); /* len bytes */

struct tc_feed_bundle_sink {
  void *self;
  void (*send)(void *self, const struct tc_feed_bundle *bundle); /* bundle: lent for the call */
};

struct tc_feed_bundles;

TB_MUST tb_rc tc_feed_bundles_new(const struct tc_feed_bundle_limits *limits,
                                  struct tc_feed_bundle_sink sink, struct tc_feed_bundles **out);
void tc_feed_bundles_free(struct tc_feed_bundles *bundles); /* sends nothing; NULL is fine */

/* Owns item, even if it fails. */
TB_MUST tb_rc tc_feed_bundles_add(struct tc_feed_bundles *bundles, struct tc_feed_item *item,
                                  uint64_t now_ns);
/* Sends the bundles that are due. Returns the time when the next is due; UINT64_MAX: none is open. */
uint64_t tc_feed_bundles_flush(struct tc_feed_bundles *bundles, uint64_t now_ns);
void tc_feed_bundles_flush_all(struct tc_feed_bundles *bundles);

size_t tc_feed_bundles_topics(const struct tc_feed_bundles *bundles);

#endif
