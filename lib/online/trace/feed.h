/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that is fed from a source, one step after the other: what the two pulls have in common. Private to the
 * libraries.
 *
 * Errors    of step: TB_END when all has been delivered; else the reader's and the source's. It stays.
 */
#ifndef TO_TRACE_FEED_H
#define TO_TRACE_FEED_H

#include "online/trace/pull.h"

struct to_feed {
  struct to_pull_source source;
  struct to_reader *reader;   /* the owner's */
  const unsigned char *bytes; /* of the source, not fed yet */
  size_t bytes_left;
  bool ended;  /* the source has no more */
  bool to_run; /* the reader has more of the generation */
  tb_rc failed;
};

/* Reads, or orders about events_max events, which go to the reader's sink. A generation that is at its end, with
 * TO_READER_HOLD, is there until the next step. */
TB_MUST tb_rc to__feed_step(struct to_feed *feed, unsigned events_max);

#endif
