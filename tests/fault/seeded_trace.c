/* SPDX-License-Identifier: Apache-2.0 */
#include "seeded_trace.h"

#include <stdlib.h>
#include <string.h>

#include "wire/batch.h"
#include "wire/write.h"

enum { VERSION = 26, END_MARK = 52, STRING_BYTES = 1000 };

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

size_t tt_seeded_room(const struct tt_seeded *trace) {
  return trace->generation_bytes + 3 * (size_t)TW_WRITE_ROOM;
}

size_t tt_seeded_header(unsigned char *out) {
  tw_header_write(out, VERSION);
  return TW_HEADER_BYTES;
}

static size_t write_clock(uint64_t gen, unsigned char *out) {
  struct tw_write w;
  struct tw_clocks clocks = {
    .frequency = 1000000000, .time = gen * 1000000, .mono_ns = gen * 1000000, .wall_sec = 1700000000
  };

  tw_write_open(&w, out, TW_WRITE_ROOM, VERSION,
                &(struct tw_batch){ .gen = gen, .thread = -1, .time = clocks.time });
  if (tw_write_sync(&w, &clocks) != TB_OK) abort();
  return tw_write_close(&w);
}

static size_t write_strings(uint64_t gen, uint64_t *state, uint64_t *id, unsigned char *out) {
  uint64_t noise[STRING_BYTES / 8];
  struct tw_write w;

  tw_write_open(&w, out, TW_WRITE_ROOM, VERSION,
                &(struct tw_batch){ .gen = gen, .thread = -1, .time = gen * 1000000 });
  do {
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) noise[i] = next_random(state);
    ++*id;
  } while (tw_write_string(&w, *id, noise, sizeof noise) == TB_OK);
  return tw_write_close(&w);
}

size_t tt_seeded_generation(const struct tt_seeded *trace, uint64_t gen, unsigned char *out,
                            uint64_t *out_batches) {
  uint64_t state = (trace->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (gen * 0x2545f491u + 1);
  uint64_t id = 0;
  size_t n = write_clock(gen, out);
  size_t want = trace->generation_bytes / 2 + next_random(&state) % (trace->generation_bytes / 2);

  *out_batches = 2;
  for (; n < want; ++*out_batches) n += write_strings(gen, &state, &id, out + n);
  out[n] = END_MARK;
  return n + 1;
}
