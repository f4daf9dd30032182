/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/emit/emit_scene.h"

#include <stdlib.h>
#include <string.h>

enum { NEVER_MS = 60000, MEMORY_BYTES = 4 << 20, WAIT_MS = 60000 };

static void add(struct emitted *e, const void *bytes, size_t n) {
  unsigned last = e->traces - 1;

  if (e->trace[last].n + n > e->trace[last].room) {
    e->trace[last].room = 2 * (e->trace[last].n + n);
    e->trace[last].bytes = realloc(e->trace[last].bytes, e->trace[last].room);
  }
  memcpy(e->trace[last].bytes + e->trace[last].n, bytes, n);
  e->trace[last].n += n;
}

static void next_trace(struct emitted *e) {
  if (e->traces == EMITTED_TRACES_MAX) abort();
  e->traces++;
  add(e, e->header, sizeof e->header);
  e->began = sizeof e->header;
}

static void header(void *self, const void *bytes, size_t n) {
  struct emitted *e = self;

  if (n != sizeof e->header || e->traces != 0) abort();
  memcpy(e->header, bytes, n);
  next_trace(e);
}

static void put(void *self, uint64_t gen, const void *bytes, size_t n) {
  struct emitted *e = self;

  if (gen <= e->ended_gen) abort();
  e->gen = gen;
  if (!e->losing) add(e, bytes, n);
}

static void lose(void *self, uint64_t gen, enum ta_loss why) {
  struct emitted *e = self;

  (void)gen;
  e->trace[e->traces - 1].n = e->began;
  e->losing = true;
  e->lost_why = why;
  e->lost++;
}

static void end(void *self, uint64_t gen) {
  struct emitted *e = self;

  if (gen < e->gen) abort();
  e->ended_gen = gen;
  e->ended++;
  e->began = e->trace[e->traces - 1].n;
  if (e->losing && e->began > sizeof e->header) next_trace(e);
  e->losing = false;
}

struct ta_outlet emit_outlet(struct emitted *e) {
  ta_misuse_aborts = false; /* the tests misuse on purpose */
  return (struct ta_outlet){ .self = e, .header = header, .put = put, .lose = lose, .end = end };
}

int emit_begin(struct emitted *e, const struct ta_emit_config *config, uint64_t memory_bytes) {
  struct ta_outlet out = emit_outlet(e);

  *e = (struct emitted){ 0 };
  return ta_emit_start_to(&out, config, memory_bytes);
}

int emit_begin_version(struct emitted *e, unsigned version) {
  struct ta_emit_config config = { .version = version, .generation_ms = NEVER_MS };

  return emit_begin(e, &config, MEMORY_BYTES);
}

int emit_end(struct emitted *e) {
  int error = ta_emit_stop(WAIT_MS);

  if (e->traces > 0 && e->trace[e->traces - 1].n == sizeof e->header) e->traces--;
  return error;
}

void emit_free(struct emitted *e) {
  for (unsigned i = 0; i < EMITTED_TRACES_MAX; i++) free(e->trace[i].bytes);
}

void emit_end_generation(void) {
  if (ta_emit_sync(WAIT_MS) != 0) abort();
}
