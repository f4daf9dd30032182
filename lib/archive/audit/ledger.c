/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/audit/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"
#include "base/grow.h"
#include "base/text/hex.h"
#include "proto/frame.pb-c.h"

/* Sums of a stream's metas. */
struct kept {
  struct tc_sum archived, taken, lost;
  uint64_t damaged_records; /* each may have been a batch */
};

struct tc_ledger_entry {
  unsigned char stream[16];
  struct tc_sum produced;
  struct kept all, settled; /* settled: up to the live stream's cut */
  bool closed, skipped;
};

struct tc_ledger_live {
  unsigned char stream[16];
  struct tc_stream_cut cut;
  bool seen; /* the stream has a meta */
};

void tc_ledger_fini(struct tc_ledger *ledger) {
  free(ledger->entries);
  free(ledger->lives);
  *ledger = (struct tc_ledger){ 0 };
}

static tb_rc add_entry(struct tc_ledger *ledger, const struct tc_ledger_entry *entry) {
  TB_TRY(TB_GROW(ledger->entries, ledger->cap, ledger->n));
  ledger->entries[ledger->n++] = *entry;
  return TB_OK;
}

tb_rc tc_ledger_live(struct tc_ledger *ledger, const unsigned char stream[16],
                     const struct tc_stream_cut *cut) {
  TB_TRY(TB_GROW(ledger->lives, ledger->lives_cap, ledger->nlives));
  struct tc_ledger_live *live = &ledger->lives[ledger->nlives++];
  *live = (struct tc_ledger_live){ .cut = *cut };
  memcpy(live->stream, stream, sizeof live->stream);
  return TB_OK;
}

static int compare_live(const void *stream, const void *live) {
  return memcmp(stream, ((const struct tc_ledger_live *)live)->stream, 16);
}

static struct tc_ledger_live *find_live(const struct tc_ledger *ledger,
                                        const unsigned char stream[16]) {
  if (ledger->nlives == 0) return NULL;
  return bsearch(stream, ledger->lives, ledger->nlives, sizeof *ledger->lives, compare_live);
}

static void kept_add(struct kept *kept, const struct kept *more) {
  tc_sum_add(&kept->archived, more->archived);
  tc_sum_add(&kept->taken, more->taken);
  tc_sum_add(&kept->lost, more->lost);
  kept->damaged_records += more->damaged_records;
}

/* Sums the meta's records up to last_seq. */
static struct kept kept_of(const tc_meta *meta, uint64_t last_seq) {
  struct kept kept = { 0 };

  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (gen->last_seq > last_seq) continue;
    tc_sum_add(meta->expired ? &kept.taken : &kept.archived,
               (struct tc_sum){ gen->batches, gen->bytes });
  }
  for (size_t i = 0; i < meta->n_losses; i++) {
    const Tracecollect__V1__LossMeta *loss = meta->losses[i];
    if (loss->seq > last_seq) continue;
    if (loss->reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED)
      kept.damaged_records += loss->seq - loss->first_seq + 1;
    else
      tc_sum_add(&kept.lost, (struct tc_sum){ loss->batches, loss->bytes });
  }
  return kept;
}

tb_rc tc_ledger_add(struct tc_ledger *ledger, const tc_meta *meta) {
  struct tc_ledger_entry entry = { .closed = meta->stream_closed && meta->produced_batches > 0,
                                   .produced = { meta->produced_batches, meta->produced_bytes },
                                   .all = kept_of(meta, UINT64_MAX) };
  struct tc_ledger_live *live = find_live(ledger, meta->stream.data);

  memcpy(entry.stream, meta->stream.data, sizeof entry.stream);
  if (live != NULL) {
    live->seen = true;
    entry.settled = kept_of(meta, live->cut.settled_seq);
  }
  return add_entry(ledger, &entry);
}

tb_rc tc_ledger_skip(struct tc_ledger *ledger, const unsigned char stream[16]) {
  struct tc_ledger_entry entry = { .skipped = true };
  struct tc_ledger_live *live = find_live(ledger, stream);

  if (live != NULL) live->seen = true;
  memcpy(entry.stream, stream, sizeof entry.stream);
  return add_entry(ledger, &entry);
}

static int by_stream(const void *a, const void *b) {
  const struct tc_ledger_entry *x = a, *y = b;

  return memcmp(x->stream, y->stream, sizeof x->stream);
}

static void join(struct tc_ledger_entry *sum, const struct tc_ledger_entry *entry) {
  if (entry->closed) sum->produced = entry->produced;
  kept_add(&sum->all, &entry->all);
  kept_add(&sum->settled, &entry->settled);
  sum->closed |= entry->closed;
  sum->skipped |= entry->skipped;
}

/* One stream's accounting. */
struct page {
  const unsigned char *stream;
  struct tc_audited_accounting accounting;
  uint64_t damaged_records;
};

static bool adds_up(const struct page *page) {
  const struct tc_audited_accounting *b = &page->accounting;
  struct tc_sum found = b->archived;

  tc_sum_add(&found, b->taken);
  tc_sum_add(&found, b->lost);
  tc_sum_add(&found, b->open);
  tc_sum_add(&found, b->spooled);
  if (page->damaged_records > 0)
    return found.batches <= b->produced.batches && found.bytes <= b->produced.bytes &&
           b->produced.batches - found.batches <= page->damaged_records;
  return found.batches == b->produced.batches && found.bytes == b->produced.bytes;
}

static void report(const struct page *page, bool live,
                   void (*problem)(void *self, const char *text), void *self) {
  const struct tc_audited_accounting *b = &page->accounting;
  const struct {
    const char *name;
    struct tc_sum sum;
  } parts[] = { { "but archived", b->archived },
                { "expired", b->taken },
                { "lost", b->lost },
                { "open in the collector", b->open },
                { "in the agent", b->spooled } };
  char text[600], hex[TC_STREAM_HEX_BYTES];

  tb_hex(page->stream, 16, hex);
  int n =
      snprintf(text, sizeof text, "stream %s: produced %" PRIu64 " batches of %" PRIu64 " bytes",
               hex, b->produced.batches, b->produced.bytes);
  for (size_t i = 0; i < (live ? 5 : 3); i++)
    n += snprintf(text + n, sizeof text - (size_t)n, ", %s %" PRIu64 " of %" PRIu64, parts[i].name,
                  parts[i].sum.batches, parts[i].sum.bytes);
  problem(self, text);
}

static void books_add(struct tc_audited_accounting *sum, const struct tc_audited_accounting *more) {
  sum->streams++;
  tc_sum_add(&sum->produced, more->produced);
  tc_sum_add(&sum->archived, more->archived);
  tc_sum_add(&sum->taken, more->taken);
  tc_sum_add(&sum->lost, more->lost);
  tc_sum_add(&sum->open, more->open);
  tc_sum_add(&sum->spooled, more->spooled);
}

static struct page page_of(const unsigned char stream[16], struct tc_sum produced,
                           const struct kept *kept) {
  return (struct page){ .stream = stream,
                        .accounting = { .produced = produced,
                                        .archived = kept->archived,
                                        .taken = kept->taken,
                                        .lost = kept->lost },
                        .damaged_records = kept->damaged_records };
}

/* An agent that reports more than it produced has nothing spooled; adds_up() then fails. */
static struct page living_page(const struct tc_ledger_live *live, const struct kept *kept) {
  const struct tc_stream_cut *cut = &live->cut;
  struct page page = page_of(live->stream, cut->produced, kept);

  page.accounting.open = cut->open;
  if (cut->reported.batches <= cut->produced.batches && cut->reported.bytes <= cut->produced.bytes)
    page.accounting.spooled = (struct tc_sum){ cut->produced.batches - cut->reported.batches,
                                               cut->produced.bytes - cut->reported.bytes };
  return page;
}

static void close_page(const struct page *page, bool live,
                       void (*problem)(void *self, const char *text), void *self,
                       struct tc_audited *out) {
  books_add(live ? &out->live : &out->closed, &page->accounting);
  if (adds_up(page)) return;
  out->problems++;
  report(page, live, problem, self);
}

void tc_ledger_close(struct tc_ledger *ledger, void (*problem)(void *self, const char *text),
                     void *self, struct tc_audited *out) {
  static const struct kept nothing = { 0 };

  if (ledger->n > 0) qsort(ledger->entries, ledger->n, sizeof *ledger->entries, by_stream);
  for (size_t i = 0; i < ledger->n;) {
    struct tc_ledger_entry sum = ledger->entries[i++];
    for (; i < ledger->n && by_stream(&sum, &ledger->entries[i]) == 0; i++)
      join(&sum, &ledger->entries[i]);
    const struct tc_ledger_live *live = find_live(ledger, sum.stream);
    if (sum.skipped) continue;
    if (sum.closed) {
      struct page page = page_of(sum.stream, sum.produced, &sum.all);
      close_page(&page, false, problem, self, out);
    } else if (live != NULL && live->cut.seq > 0) {
      struct page page = living_page(live, &sum.settled);
      close_page(&page, true, problem, self, out);
    }
  }
  for (size_t i = 0; i < ledger->nlives; i++) {
    const struct tc_ledger_live *live = &ledger->lives[i];
    if (live->seen || live->cut.seq == 0) continue;
    struct page page = living_page(live, &nothing);
    close_page(&page, true, problem, self, out);
  }
  out->live_streams = ledger->nlives;
}
