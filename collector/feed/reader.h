/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the live feed in this process, on a loop of its own choice.
 *
 *   feed thread ──queue──> tc_feed_reader_take() on the reader's thread
 *
 * It gets every message as a subscriber does, topic NUL protobuf, and filters for itself. While it does
 * not listen it costs nothing. Messages that find its queue full are lost to it alone, as the
 * topic's count shows.
 *
 * Memory    a message is shared and lives until its last holder lets go of it. At most TC_FEED_READER_BYTES wait in
 *           the queue.
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
  size_t topic_len; /* a NUL follows the topic, the packed FeedMessage follows that */
  size_t len;       /* of all of it */
  char bytes[];
};

void tc_feed_message_let_go(struct tc_feed_message *message); /* any thread */

struct tc_feed_reader;

TB_MUST tb_rc tc_feed_reader_new(void (*wake)(void *self), void *self, struct tc_feed_reader **out);
void tc_feed_reader_free(struct tc_feed_reader *reader); /* after tc_feed_stop(); NULL is fine */

void tc_feed_reader_listen(struct tc_feed_reader *reader, bool listens);
bool tc_feed_reader_listens(const struct tc_feed_reader *reader);
/* False: reports need not be made for it. It wants them until it says otherwise. */
void tc_feed_reader_want_reports(struct tc_feed_reader *reader, bool wants);
bool tc_feed_reader_wants_reports(const struct tc_feed_reader *reader);
/* NULL: none. The caller is a holder. */
struct tc_feed_message *tc_feed_reader_take(struct tc_feed_reader *reader);

/* The feed's thread. False: no room, it is lost to this reader. */
bool tc_feed_reader_give(struct tc_feed_reader *reader, struct tc_feed_message *message);

#endif
