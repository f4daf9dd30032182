/* SPDX-License-Identifier: Apache-2.0 */
/* The whole reader: it gives the same events, verdict and place of the fault whether the bytes stay in place or arrive
 * in pieces, with the newest instructions or without; times rise; every stack and string of an event can be read; all
 * memory is released. */
#include <string.h>

#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "fuzz/read_trace.h"
#include "fuzz/trace_budget.h"
#include "online/event/generation.h"
#include "online/trace/reader.h"
#include "wire/spec.h"

enum { MEMORY_MAX = 64 << 20, FUEL = 100000 };

struct outcome {
  tb_rc rc;
  struct tb_diag diag;
  uint64_t hash, events;
  to_ns last;
};

static void add(struct outcome *o, uint64_t value) {
  o->hash = (o->hash ^ value) * UINT64_C(0x100000001b3);
}

static void look_at_stack(struct outcome *o, const struct to_generation *gen, uint64_t id) {
  struct to_stack_iter it;
  struct to_frame frame;
  unsigned frames = 0;

  if (!to_generation_stack_own(gen, id, &it)) return;
  for (; to_stack_next(&it, &frame); frames++) {
    FUZZ_CHECK(frame.function.len <= TW_STRING_BYTES_MAX && frame.file.len <= TW_STRING_BYTES_MAX);
    for (size_t i = 0; i < frame.function.len; i++) add(o, (unsigned char)frame.function.data[i]);
  }
  FUZZ_CHECK(frames <= TW_STACK_FRAMES_MAX && frames == to_stack_length(gen, id));
}

static void look_at_event(struct outcome *o, const struct to_generation *gen,
                          const struct to_event *ev) {
  const struct tw_spec *spec = tw_spec(ev->type);
  struct to_string string;

  add(o, ev->type);
  add(o, (uint64_t)ev->time);
  for (unsigned i = 0; i < spec->nargs && i < TW_TIMED_ARGS_MAX;
       i++) { /* a Sync is no row of the table */
    add(o, ev->args[i]);
    if (gen == NULL) continue;
    if (spec->args[i].type == TW_ARG_STACK) look_at_stack(o, gen, ev->args[i]);
    if (spec->args[i].type == TW_ARG_STRING && to_generation_string(gen, ev->args[i], &string))
      FUZZ_CHECK(string.len <= TW_STRING_BYTES_MAX);
  }
}

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct outcome *o = self;

  for (size_t i = 0; i < n; i++) {
    FUZZ_CHECK(events[i].time > o->last || events[i].time == INT64_MIN);
    o->last = events[i].time;
    look_at_event(o, gen, &events[i]);
  }
  o->events += n;
  return TB_OK;
}

static struct outcome run(const uint8_t *data, size_t size, size_t piece, unsigned flags) {
  struct outcome o = { .last = INT64_MIN };
  /* For every second length of inputs, threads are parked as soon as they wait. */
  const struct to_limits limits = { .fuel_tries = FUEL, .exact_tries = size % 2 };
  struct to_reader *reader;
  struct tb_mem mem;

  tb_diag_clear(&o.diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  struct to_event_sink sink = { &o, take_events };
  FUZZ_CHECK(to_reader_new(&mem, &limits, flags, sink, &o.diag, &reader) == TB_OK);
  tt_tighten(&mem, size);
  o.rc = tt_read_trace(reader, data, size, piece);
  FUZZ_CHECK(to_reader_events(reader) == o.events);
  to_reader_free(reader);
  FUZZ_CHECK(mem.bytes == 0);
  return o;
}

/* Reads half of the inputs twice. They are chosen by their checksum, not by their length, which chooses the limits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct outcome still = run(data, size, size, TO_READER_BYTES_STAY);

  FUZZ_CHECK(still.rc == TB_OK || still.diag.text[0] != '\0');
  if (tb_crc32c(0, data, size) % 2 == 0) return 0;
  struct outcome moving = run(data, size, 1 + size / 7, TO_READER_FRAMES | TO_READER_PLAIN);
  /* The two readers keep different bytes, so one may run out of memory where the other does not. */
  if (still.rc == TB_BUDGET || moving.rc == TB_BUDGET) return 0;
  FUZZ_CHECK(still.rc == moving.rc && still.events == moving.events && still.hash == moving.hash);
  FUZZ_CHECK(strcmp(still.diag.text, moving.diag.text) == 0);
  FUZZ_CHECK(still.diag.offset == moving.diag.offset && still.diag.gen == moving.diag.gen);
  return 0;
}
