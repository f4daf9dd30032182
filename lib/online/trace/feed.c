/* SPDX-License-Identifier: Apache-2.0 */
#include "online/trace/feed.h"

static tb_rc read_more(struct to_feed *feed) {
  const void *more;
  size_t used;

  if (feed->bytes_left == 0 && !feed->ended) {
    tb_rc rc = feed->source.more(feed->source.self, &more, &feed->bytes_left);
    feed->bytes = more;
    if (rc == TB_END) {
      feed->ended = true;
      feed->bytes_left = 0;
    } else if (rc != TB_OK) {
      return rc;
    }
  }
  if (feed->ended) return to_reader_finish(feed->reader);
  tb_rc rc = to_reader_feed(feed->reader, feed->bytes, feed->bytes_left, &used);
  feed->bytes += used;
  feed->bytes_left -= used;
  return rc;
}

tb_rc to__feed_step(struct to_feed *feed, unsigned events_max) {
  if (feed->failed != TB_OK) return feed->failed;
  bool finishing = feed->ended && !feed->to_run;
  tb_rc rc = feed->to_run ? to_reader_run(feed->reader, events_max) : read_more(feed);
  feed->to_run = rc == TB_AGAIN;
  if (rc == TB_AGAIN) return TB_OK;
  feed->failed = rc != TB_OK ? rc : finishing ? TB_END : TB_OK;
  return TB_OK;
}
