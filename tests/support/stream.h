/* SPDX-License-Identifier: Apache-2.0 */
/* Streams with the outside of a Go trace: header, batches with true headers, end marks. What is in
 * the batches is noise, which is all that those who only carry them may care about. */
#ifndef TT_STREAM_H
#define TT_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct tt_stream {
  unsigned char *bytes;
  size_t n;
  uint64_t batches; /* end marks too: what an agent counts */
};

/* version 22..26; each of the generations has that many batches of that many data bytes. */
struct tt_stream tt_stream_make(unsigned version, unsigned generations, unsigned batches,
                                unsigned batch_bytes);
void tt_stream_free(struct tt_stream *stream);

#endif
