/* SPDX-License-Identifier: Apache-2.0 */
/* Makes streams that look like a Go trace from outside: header, batches with valid headers, end
 * marks. The batches hold noise, which is enough for code that only carries them. */
#ifndef TT_STREAM_H
#define TT_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct tt_stream {
  unsigned char *bytes;
  size_t n;
  uint64_t batches; /* end marks included, as an agent counts */
};

/* Makes a stream of version 22..26; each generation has that many batches of that many data
 * bytes. */
struct tt_stream tt_stream_make(unsigned version, unsigned generations, unsigned batches,
                                unsigned batch_bytes);
void tt_stream_free(struct tt_stream *stream);

#endif
