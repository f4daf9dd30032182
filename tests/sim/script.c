/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "proto/frame.h"
#include "proto/frame.pb-c.h"

enum { MESSAGE_BYTES = 256, FULL_BATCH = 9000 };

struct writer {
  struct sim_script *script;
  struct sim_chance *chance;
  size_t cap, units_cap;
  uint64_t gen;
};

static struct sim_record make_record(unsigned kind, uint64_t gen, const void *payload, size_t len) {
  struct sim_record record = { .kind = (uint8_t)kind,
                               .gen = gen,
                               .len = (uint32_t)len,
                               .crc = tb_crc32c(0, payload, len),
                               .payload = malloc(len + 1) };

  if (record.payload == NULL) abort();
  memcpy(record.payload, payload, len);
  return record;
}

static void add(struct writer *w, struct sim_record record) {
  struct sim_script *script = w->script;

  if (script->nrecords == w->cap) {
    w->cap = 2 * w->cap + 64;
    script->records = reallocarray(script->records, w->cap, sizeof *script->records);
    if (script->records == NULL) abort();
  }
  script->records[script->nrecords++] = record;
}

static void add_unit(struct writer *w, struct sim_unit unit) {
  struct sim_script *script = w->script;

  if (script->nunits == w->units_cap) {
    w->units_cap = 2 * w->units_cap + 64;
    script->units = reallocarray(script->units, w->units_cap, sizeof *script->units);
    if (script->units == NULL) abort();
  }
  unit.last_seq = script->nrecords;
  script->units[script->nunits++] = unit;
}

static size_t batch_bytes(struct sim_chance *chance) {
  if (sim_once_in(chance, 60)) return FULL_BATCH;
  if (sim_once_in(chance, 12)) return 1 + (size_t)sim_below(chance, 3000);
  return 1 + (size_t)sim_below(chance, 200);
}

/* Adds batches, and their sums to `end`. */
static void add_batches(struct writer *w, size_t n, Tracecollect__V1__GenerationEnd *end) {
  unsigned char payload[FULL_BATCH];

  for (size_t i = 0; i < n; i++) {
    size_t len = batch_bytes(w->chance);
    for (size_t at = 0; at < len; at++) payload[at] = (unsigned char)sim_next(w->chance);
    payload[0] = 1; /* an event batch */
    struct sim_record record = make_record(TP_BATCH, w->gen, payload, len);
    add(w, record);
    end->crc = tb_crc32c(end->crc, &record.crc, sizeof record.crc); /* both little endian */
    end->bytes += len;
    end->batches++;
  }
}

static void add_generation(struct writer *w, size_t batches) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char message[MESSAGE_BYTES];
  struct sim_unit unit = { .first_seq = w->script->nrecords + 1, .gen = ++w->gen };

  add_batches(w, batches, &end);
  end.wall_ns = UINT64_C(1790000000000000000) + w->gen;
  size_t len = tracecollect__v1__generation_end__pack(&end, message);
  add(w, make_record(TP_GENEND, w->gen, message, len));
  unit.batches = end.batches;
  unit.bytes = end.bytes;
  add_unit(w, unit);
}

/* Adds the loss of a generation of which `sent` batches were sent already. */
static void add_loss(struct writer *w, size_t sent) {
  Tracecollect__V1__GenerationEnd begun = TRACECOLLECT__V1__GENERATION_END__INIT;
  Tracecollect__V1__Loss loss = TRACECOLLECT__V1__LOSS__INIT;
  unsigned char message[MESSAGE_BYTES];
  struct sim_unit unit = { .first_seq = w->script->nrecords + 1, .gen = ++w->gen, .lost_gens = 1 };

  add_batches(w, sent, &begun);
  unit.lost_gens += (size_t)sim_below(w->chance, 3);
  loss.first_gen = w->gen;
  loss.last_gen = w->gen += unit.lost_gens - 1;
  loss.batches = unit.batches = begun.batches + 1 + sim_below(w->chance, 10);
  loss.bytes = unit.bytes = begun.bytes + 100 * (unit.batches - begun.batches);
  loss.sent_batches = begun.batches;
  loss.sent_bytes = begun.bytes;
  loss.reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_SPOOL_FULL;
  size_t len = tracecollect__v1__loss__pack(&loss, message);
  add(w, make_record(TP_LOSS, unit.gen, message, len));
  add_unit(w, unit);
}

struct sim_script sim_script_make(struct sim_chance *chance, size_t nrecords, bool slow) {
  struct sim_script script = { 0 };
  struct writer w = { .script = &script, .chance = chance };

  add(&w, make_record(TP_HEADER, 0, "go 1.26 trace\0\0\0", SIM_HEADER_BYTES));
  while (script.nrecords < nrecords)
    if (sim_once_in(chance, 9))
      add_loss(&w, (size_t)sim_below(chance, 3));
    else
      add_generation(&w, 1 + (size_t)(slow ? 40 + sim_below(chance, 60) : sim_below(chance, 7)));
  return script;
}

void sim_script_free(struct sim_script *script) {
  for (size_t i = 0; i < script->nrecords; i++) free(script->records[i].payload);
  free(script->records);
  free(script->units);
  *script = (struct sim_script){ 0 };
}

uint64_t sim_script_border(const struct sim_script *script, uint64_t seq) {
  for (size_t i = 0; i < script->nunits; i++)
    if (script->units[i].last_seq >= seq) return script->units[i].last_seq;
  return script->nrecords;
}

struct sim_record sim_script_close(const struct sim_script *script, uint64_t end_seq) {
  Tracecollect__V1__Close close = TRACECOLLECT__V1__CLOSE__INIT;
  Tracecollect__V1__Counters counters = TRACECOLLECT__V1__COUNTERS__INIT;
  unsigned char message[MESSAGE_BYTES];

  for (size_t i = 0; i < script->nunits && script->units[i].last_seq <= end_seq; i++) {
    counters.produced_batches += script->units[i].batches;
    counters.produced_bytes += script->units[i].bytes;
  }
  close.counters = &counters;
  return make_record(TP_CLOSE, 0, message, tracecollect__v1__close__pack(&close, message));
}
