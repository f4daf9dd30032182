/* SPDX-License-Identifier: Apache-2.0 */
/* Removes experiments that Go's tools cannot read from a trace: batches of unknown experiments are left out, and events of them
 * are removed from their threads' batches. Their time difference is added to the next event's, so all others keep their times.
 *
 *   tk_strip_begin(&s, version);
 *   for each batch of the trace, in order:
 *     len = tk_strip_batch(&s, item, &bytes);        -- 0: nothing is left
 *
 * A batch that cannot be read is kept unchanged: it is broken for every tool.
 *
 * Memory    itself: one batch. Its output is lent until the next call.
 */
#ifndef TK_FETCH_STRIP_H
#define TK_FETCH_STRIP_H

#include "wire/experiments.h"
#include "wire/split.h"

struct tk_strip {
  struct tw_experiments experiments; /* of the current generation */
  uint64_t gen;
  unsigned version;
  uint64_t batches, events, bytes; /* left out */
  unsigned char out[TW_BATCH_BYTES_MAX + TW_BATCH_HEADER_BYTES_MAX];
};

void tk_strip_begin(struct tk_strip *s, unsigned version);
size_t tk_strip_batch(struct tk_strip *s, const struct tw_item *item,
                      const unsigned char **out_bytes);

#endif
