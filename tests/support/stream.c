/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/stream.h"

#include <stdlib.h>
#include <string.h>

#include "wire/batch.h"

enum { END_MARK = 52, FIRST_VERSION_WITH_END_MARK = 26 };

static size_t add_batch(unsigned char *out, uint64_t gen, unsigned thread, unsigned bytes) {
  struct tw_batch batch = {
    .gen = gen, .thread = thread, .time = gen * 1000 + thread, .len = bytes
  };
  size_t n = tw_batch_write_header(out, &batch);
  uint32_t noise = (uint32_t)(gen * 2654435761u + thread + 1);

  for (unsigned i = 0; i < bytes; i += sizeof noise) {
    noise = noise * 1664525u + 1013904223u;
    memcpy(out + n + i, &noise, bytes - i < sizeof noise ? bytes - i : sizeof noise);
  }
  return n + bytes;
}

struct tt_stream tt_stream_make(unsigned version, unsigned generations, unsigned batches,
                                unsigned batch_bytes) {
  size_t max = TW_HEADER_BYTES + (size_t)generations * (1 + (size_t)batches * (batch_bytes + 64));
  struct tt_stream s = { .bytes = malloc(max), .n = TW_HEADER_BYTES };

  tw_header_write(s.bytes, version);
  for (unsigned gen = 1; gen <= generations; gen++) {
    for (unsigned i = 0; i < batches; i++) s.n += add_batch(s.bytes + s.n, gen, i, batch_bytes);
    s.batches += batches;
    if (version < FIRST_VERSION_WITH_END_MARK) continue;
    s.bytes[s.n++] = END_MARK;
    s.batches++;
  }
  return s;
}

void tt_stream_free(struct tt_stream *stream) {
  free(stream->bytes);
  *stream = (struct tt_stream){ 0 };
}
