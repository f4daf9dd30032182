/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/generation/status.h"

#include <string.h>

enum {
  STREAM_BYTES = offsetof(struct ta_forward_status, snaps) + sizeof(uint64_t),
  STREAM_BYTES_THEN = 440,
};

struct with_stream {
  size_t size;
  uint64_t generations, lost_generations, dropped, misused, threads;
  int cycle_clock;
  unsigned char stream[STREAM_BYTES_THEN] __attribute__((aligned(8)));
  uint64_t lost_stacks, samples, lost_samples;
};

_Static_assert((int)STREAM_BYTES == (int)STREAM_BYTES_THEN,
               "ta_forward_status is as it was up to its first last field");
_Static_assert(sizeof(struct with_stream) == 520, "the old layout is as it was");
_Static_assert(sizeof(struct ta_emit_status) != sizeof(struct with_stream),
               "sizes tell the layouts apart: append two fields at once");
_Static_assert(offsetof(struct ta_emit_status, lost_stacks) == 56,
               "fields of ta_emit_status are appended");

static void store_with_stream(const struct ta_emit_status *status,
                              const struct ta_forward_status *stream, void *out) {
  struct with_stream then = {
    .size = sizeof then,
    .generations = status->generations,
    .lost_generations = status->lost_generations,
    .dropped = status->dropped,
    .misused = status->misused,
    .threads = status->threads,
    .cycle_clock = status->cycle_clock,
    .lost_stacks = status->lost_stacks,
    .samples = status->samples,
    .lost_samples = status->lost_samples,
  };
  size_t stream_bytes = sizeof then.stream;

  memcpy(then.stream, stream, sizeof then.stream);
  memcpy(then.stream, &stream_bytes, sizeof stream_bytes); /* its own size field */
  memcpy(out, &then, sizeof then);
}

void ta_status_store(const struct ta_emit_status *status, const struct ta_forward_status *stream,
                     struct ta_emit_status *out) {
  size_t size = out->size;

  if (size == sizeof(struct with_stream))
    store_with_stream(status, stream, out);
  else
    memcpy(out, status, size < sizeof *status ? size : sizeof *status);
}
