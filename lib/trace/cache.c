/* SPDX-License-Identifier: Apache-2.0 */
/* A kept generation is a reader that holds it (TO_READER_HOLD) and a copy of its events. Both take their
 * memory through an allocator of ours, which lets the oldest go when the room is used up: so the room that a
 * generation wants need not be known beforehand. Each has a counter of its own, as one of them may be
 * let go of while another's is in the middle of a request. */
#include "trace/cache.h"
#include "base/grow.h"

#include <inttypes.h>
#include <string.h>

struct kept {
  struct to_place place;
  struct tb_mem mem;        /* of reader and events; takes from the cache's, making room */
  struct to_reader *reader; /* NULL: not kept */
  const struct to_generation *gen;
  struct to_event *events;
  size_t count, room;
  uint64_t asked; /* the cache's clock then */
  unsigned borrowed;
};

struct to_cache {
  struct tb_mem *mem; /* the room */
  bool full;          /* it was too small for what is being loaded */
  const unsigned char *trace;
  size_t header, n, kept;
  uint64_t clock;
  struct kept *loading; /* the one that is being loaded; NULL: none */
  struct kept at[];
};

static size_t cache_bytes(size_t n) {
  return sizeof(struct to_cache) + n * sizeof(struct kept);
}

static void let_go(struct to_cache *cache, struct kept *k) {
  if (k->reader == NULL) return;
  to_reader_free(k->reader);
  tb_mem_give(&k->mem, k->events, k->room * sizeof *k->events);
  *k = (struct kept){ .place = k->place };
  cache->kept--;
}

static bool let_the_oldest_go(struct to_cache *cache) {
  struct kept *oldest = NULL;

  for (struct kept *k = cache->at; k < cache->at + cache->n; k++) {
    if (k->reader == NULL || k->borrowed > 0 || k == cache->loading) continue;
    if (oldest == NULL || k->asked < oldest->asked) oldest = k;
  }
  if (oldest == NULL) return false;
  let_go(cache, oldest);
  return true;
}

/* A tb_mem_resize_fn. */
static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct to_cache *cache = self;

  if (new_bytes == 0) {
    tb_mem_give(cache->mem, block, old_bytes);
    return NULL;
  }
  tb_rc rc;
  while ((rc = tb_mem_resize(cache->mem, &block, old_bytes, new_bytes)) != TB_OK)
    if (rc != TB_BUDGET || !let_the_oldest_go(cache)) {
      cache->full |= rc == TB_BUDGET;
      return NULL;
    }
  return block;
}

tb_rc to_cache_new(struct tb_mem *mem, const void *trace, size_t header,
                   const struct to_place *places, size_t n, struct to_cache **out) {
  struct to_cache *cache;

  if (n > SIZE_MAX / sizeof(struct kept) - 1) return TB_BUDGET;
  TB_TRY(tb_mem_take(mem, cache_bytes(n), &cache));
  cache->mem = mem;
  cache->trace = trace;
  cache->header = header;
  cache->n = n;
  for (size_t i = 0; i < n; i++) cache->at[i].place = places[i];
  *out = cache;
  return TB_OK;
}

void to_cache_free(struct to_cache *cache) {
  if (cache == NULL) return;
  for (size_t i = 0; i < cache->n; i++) let_go(cache, &cache->at[i]);
  tb_mem_give(cache->mem, cache, cache_bytes(cache->n));
}

size_t to_cache_kept(const struct to_cache *cache) {
  return cache->kept;
}

static tb_rc keep_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct to_cache *cache = self;
  struct kept *k = cache->loading;

  if (gen == NULL) return TB_OK; /* a last Sync is of no generation */
  TB_TRY(tb_mem_grow(&k->mem, &k->events, &k->room, k->count + n, sizeof *events));
  k->gen = gen;
  memcpy(k->events + k->count, events, n * sizeof *events);
  k->count += n;
  return TB_OK;
}

/* Until the generation is ordered to its end, and held. */
static tb_rc run(struct kept *k) {
  tb_rc rc;

  do rc = to_reader_run(k->reader, UINT32_MAX);
  while (rc == TB_AGAIN && to_reader_holds(k->reader) == NULL);
  return rc == TB_AGAIN ? TB_OK : rc;
}

static tb_rc order(const struct to_cache *cache, struct kept *k, struct tb_diag *diag) {
  size_t used;

  TB_TRY(to_reader_feed(k->reader, cache->trace, cache->header, &used));
  tb_rc rc = to_reader_feed(k->reader, cache->trace + k->place.offset, k->place.bytes, &used);
  if (rc == TB_OK) rc = to_reader_finish(k->reader); /* before 1.26 that is where it ends */
  if (rc == TB_AGAIN) rc = run(k);
  if (rc == TB_OK && to_reader_holds(k->reader) == NULL)
    rc = tb_fail(diag, TB_BROKEN, "no generation is at offset %" PRIu64, k->place.offset);
  return rc;
}

/* Room for events that did not come is of no use. */
static tb_rc trim(struct kept *k) {
  void *block = k->events;

  if (k->count == 0) return TB_OK;
  TB_TRY(tb_mem_resize(&k->mem, &block, k->room * sizeof *k->events, k->count * sizeof *k->events));
  k->events = block;
  k->room = k->count;
  return TB_OK;
}

static tb_rc load(struct to_cache *cache, struct kept *k, struct tb_diag *diag) {
  struct to_event_sink sink = { cache, keep_events };

  cache->loading = k;
  cache->full = false;
  tb_mem_init(&k->mem, resize, cache, SIZE_MAX);
  tb_rc rc =
      to_reader_new(&k->mem, NULL, TO_READER_BYTES_STAY | TO_READER_HOLD, sink, diag, &k->reader);
  if (rc == TB_OK) {
    cache->kept++;
    rc = order(cache, k, diag);
    if (rc == TB_OK) rc = trim(k);
  }
  cache->loading = NULL;
  if (rc == TB_OK) return TB_OK;
  let_go(cache, k);
  if (!cache->full) return rc;
  tb_diag_clear(diag);
  return tb_fail(diag, TB_BUDGET, "the generation does not fit into %zu bytes",
                 cache->mem->bytes_max);
}

tb_rc to_cache_borrow(struct to_cache *cache, size_t i, struct tb_diag *diag,
                      struct to_ordered *out) {
  if (i >= cache->n) return tb_fail(diag, TB_NOTFOUND, "there is no generation at place %zu", i);
  struct kept *k = &cache->at[i];

  if (k->reader == NULL) TB_TRY(load(cache, k, diag));
  k->asked = ++cache->clock;
  k->borrowed++;
  *out = (struct to_ordered){ k->gen, k->events, k->count };
  return TB_OK;
}

void to_cache_return(struct to_cache *cache, size_t i) {
  cache->at[i].borrowed--;
}
