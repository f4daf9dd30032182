/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that is fed from a source step by step: shared by the two pulls, private to the libraries.
 *
 * Errors    TB_END when everything has been delivered, the reader's and the source's. Later steps return the same.
 */
#ifndef TO_TRACE_FEED_H
#define TO_TRACE_FEED_H

#include "online/trace/pull.h"

struct to_feed {
  struct to_pull_source source;
  struct to_reader *reader;   /* freed by the owner */
  const unsigned char *bytes; /* from the source, not fed yet */
  size_t bytes_left;
  bool ended;  /* the source has no more */
  bool to_run; /* the reader has more of the generation */
  tb_rc failed;
};

/* Reads bytes, or orders about events_max events into the reader's sink. With TO_READER_HOLD a finished generation
 * stays valid until the next step. */
TB_MUST tb_rc to__feed_step(struct to_feed *feed, unsigned events_max);

#endif
