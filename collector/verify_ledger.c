/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/verify_ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/statedir.h"
#include "proto/frame.pb-c.h"

struct tc_ledger_entry {
  unsigned char stream[16];
  struct tc_verified_sum produced, archived, taken, lost;
  uint64_t damaged_records; /* may have been batches */
  bool closed, skipped;
};

void tc_ledger_fini(struct tc_ledger *ledger) {
  free(ledger->entries);
  *ledger = (struct tc_ledger){ 0 };
}

static tb_rc add(struct tc_ledger *ledger, const struct tc_ledger_entry *entry) {
  if (ledger->n == ledger->cap) {
    size_t cap = ledger->cap == 0 ? 256 : 2 * ledger->cap;
    void *moved = reallocarray(ledger->entries, cap, sizeof *ledger->entries);
    if (moved == NULL) return TB_NOMEM;
    ledger->entries = moved;
    ledger->cap = cap;
  }
  ledger->entries[ledger->n++] = *entry;
  return TB_OK;
}

static void sum_add(struct tc_verified_sum *sum, uint64_t batches, uint64_t bytes) {
  sum->batches += batches;
  sum->bytes += bytes;
}

tb_rc tc_ledger_add(struct tc_ledger *ledger, const tc_meta *meta) {
  struct tc_ledger_entry entry = { .closed = meta->stream_closed && meta->produced_batches > 0,
                                   .produced = { meta->produced_batches, meta->produced_bytes } };

  memcpy(entry.stream, meta->stream.data, sizeof entry.stream);
  for (size_t i = 0; i < meta->n_generations; i++)
    sum_add(meta->expired ? &entry.taken : &entry.archived, meta->generations[i]->batches,
            meta->generations[i]->bytes);
  for (size_t i = 0; i < meta->n_losses; i++) {
    const Tracecollect__V1__LossMeta *loss = meta->losses[i];
    if (loss->reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED)
      entry.damaged_records += loss->seq - loss->first_seq + 1;
    else
      sum_add(&entry.lost, loss->batches, loss->bytes);
  }
  return add(ledger, &entry);
}

tb_rc tc_ledger_skip(struct tc_ledger *ledger, const unsigned char stream[16]) {
  struct tc_ledger_entry entry = { .skipped = true };

  memcpy(entry.stream, stream, sizeof entry.stream);
  return add(ledger, &entry);
}

static int by_stream(const void *a, const void *b) {
  const struct tc_ledger_entry *x = a, *y = b;

  return memcmp(x->stream, y->stream, sizeof x->stream);
}

static void join(struct tc_ledger_entry *sum, const struct tc_ledger_entry *entry) {
  if (entry->closed) sum->produced = entry->produced;
  sum_add(&sum->archived, entry->archived.batches, entry->archived.bytes);
  sum_add(&sum->taken, entry->taken.batches, entry->taken.bytes);
  sum_add(&sum->lost, entry->lost.batches, entry->lost.bytes);
  sum->damaged_records += entry->damaged_records;
  sum->closed |= entry->closed;
  sum->skipped |= entry->skipped;
}

static bool adds_up(const struct tc_ledger_entry *stream) {
  uint64_t batches = stream->archived.batches + stream->taken.batches + stream->lost.batches;
  uint64_t bytes = stream->archived.bytes + stream->taken.bytes + stream->lost.bytes;

  if (stream->damaged_records > 0)
    return batches <= stream->produced.batches && bytes <= stream->produced.bytes &&
           stream->produced.batches - batches <= stream->damaged_records;
  return batches == stream->produced.batches && bytes == stream->produced.bytes;
}

static void tell(const struct tc_ledger_entry *stream,
                 void (*problem)(void *self, const char *text), void *self) {
  char text[600], hex[TC_STREAM_HEX_BYTES];

  tc_hex(stream->stream, sizeof stream->stream, hex);
  snprintf(text, sizeof text,
           "stream %s: produced %" PRIu64 " batches of %" PRIu64 " bytes, but archived %" PRIu64
           " of %" PRIu64 ", expired %" PRIu64 " of %" PRIu64 ", lost %" PRIu64 " of %" PRIu64,
           hex, stream->produced.batches, stream->produced.bytes, stream->archived.batches,
           stream->archived.bytes, stream->taken.batches, stream->taken.bytes, stream->lost.batches,
           stream->lost.bytes);
  problem(self, text);
}

void tc_ledger_close(struct tc_ledger *ledger, void (*problem)(void *self, const char *text),
                     void *self, struct tc_verified *out) {
  if (ledger->n > 0) qsort(ledger->entries, ledger->n, sizeof *ledger->entries, by_stream);
  for (size_t i = 0; i < ledger->n;) {
    struct tc_ledger_entry sum = ledger->entries[i++];
    for (; i < ledger->n && by_stream(&sum, &ledger->entries[i]) == 0; i++)
      join(&sum, &ledger->entries[i]);
    if (!sum.closed || sum.skipped) continue;
    out->closed_streams++;
    sum_add(&out->produced, sum.produced.batches, sum.produced.bytes);
    sum_add(&out->archived, sum.archived.batches, sum.archived.bytes);
    sum_add(&out->taken, sum.taken.batches, sum.taken.bytes);
    sum_add(&out->lost, sum.lost.batches, sum.lost.bytes);
    if (adds_up(&sum)) continue;
    out->problems++;
    tell(&sum, problem, self);
  }
}
