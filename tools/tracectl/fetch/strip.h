/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a trace with experiments of its own that Go's tools can read: batches of unknown experiments are left
 * out, and events of them taken out of their threads' batches. The time since the event before is added to the next
 * one's, so all others stay where they are.
 *
 *   tk_strip_begin(&s, version);
 *   for each batch of the trace, in order:
 *     len = tk_strip_batch(&s, item, &bytes);        -- 0: nothing of it is left
 *
 * A batch that cannot be read stays as it is: it is broken for everybody.
 *
 * Memory    itself: one batch. Its output is lent until the next call.
 */
#ifndef TK_FETCH_STRIP_H
#define TK_FETCH_STRIP_H

#include "wire/experiments.h"
#include "wire/split.h"

struct tk_strip {
  struct tw_experiments experiments; /* of the generation at hand */
  uint64_t gen;
  unsigned version;
  uint64_t batches, events, bytes; /* left out */
  unsigned char out[TW_BATCH_BYTES_MAX + TW_BATCH_HEADER_BYTES_MAX];
};

void tk_strip_begin(struct tk_strip *s, unsigned version);
size_t tk_strip_batch(struct tk_strip *s, const struct tw_item *item,
                      const unsigned char **out_bytes);

#endif
