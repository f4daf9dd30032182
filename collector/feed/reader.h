/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the live feed in this process, on a loop of its choice.
 *
 *   feed thread ──queue──> tc_feed_reader_take() on the reader's thread
 *
 * It receives every message in the form of a subscriber, topic NUL protobuf, and does its own filtering. While it does
 * not listen it costs nothing. Messages for which its queue has no room are lost to this reader only, as the topic's
 * sequence shows.
 *
 * Memory    a message is shared and is freed by its last holder. At most TC_FEED_READER_BYTES are queued.
 * Threads   new before tc_feed_attach(); listen: any; take: the reader's one thread. wake() is called on
 *           the feed's thread (uv_async_send() fits).
 * Errors    new: TB_NOMEM.
 */
#ifndef TC_FEED_READER_H
#define TC_FEED_READER_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/result.h"

enum { TC_FEED_READER_BYTES = 16 << 20 };

struct tc_feed_message {
  atomic_uint holders;
  size_t topic_len; /* a NUL follows the topic, and the packed FeedMessage the NUL */
  size_t len;       /* of the whole message */
  char bytes[];
};

void tc_feed_message_release(struct tc_feed_message *message); /* any thread */

struct tc_feed_reader;

TB_MUST tb_rc tc_feed_reader_new(void (*wake)(void *self), void *self, struct tc_feed_reader **out);
void tc_feed_reader_free(struct tc_feed_reader *reader); /* after tc_feed_stop(); NULL is fine */

void tc_feed_reader_listen(struct tc_feed_reader *reader, bool listens);
bool tc_feed_reader_listens(const struct tc_feed_reader *reader);
/* wants false: reports need not be made for this reader. The initial value is true. */
void tc_feed_reader_want_reports(struct tc_feed_reader *reader, bool wants);
bool tc_feed_reader_wants_reports(const struct tc_feed_reader *reader);
/* Returns NULL if the queue is empty. The caller becomes a holder. */
struct tc_feed_message *tc_feed_reader_take(struct tc_feed_reader *reader);

/* Called on the feed's thread. Returns false if the message was dropped for lack of room. */
bool tc_feed_reader_return(struct tc_feed_reader *reader, struct tc_feed_message *message);

#endif
