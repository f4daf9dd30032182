/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/generation_time.h"

#include "wire/batch.h"
#include "wire/sections.h"

enum { NS = 1000000000 };

typedef Tracecollect__V1__GenerationMeta generation_meta;

/* ---- from batches ---- */

static void take_sync(struct tc_clock_ticks *ticks, unsigned version,
                      const struct tw_batch *batch) {
  struct tw_section section;
  struct tw_sync sync;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, batch, version, &diag);
  while (tw_sync_next(&section, version, &sync) == TB_OK) {
    if (sync.type == TW_EV_FREQUENCY) {
      ticks->frequency = sync.args[0];
    } else if (sync.args[2] < INT64_MAX / NS && sync.args[3] < NS) {
      ticks->snapshot = batch->time + sync.args[0];
      ticks->snapshot_wall_ns = sync.args[2] * NS + sync.args[3];
    }
  }
}

void tc_clock_ticks_take(struct tc_clock_ticks *ticks, unsigned version, const void *bytes,
                         size_t len) {
  struct tw_batch batch;
  struct tb_diag diag;
  size_t used;

  tb_diag_clear(&diag);
  if (version == 0 || tw_batch_read(bytes, len, &diag, &batch, &used) != TB_OK) return;
  enum tw_batch_kind kind = tw_batch_kind(&batch, version);
  if (kind == TW_BATCH_END) return;
  if (!ticks->any || batch.time < ticks->first) ticks->first = batch.time;
  if (!ticks->any || batch.time > ticks->last) ticks->last = batch.time;
  ticks->any = true;
  if (kind == TW_BATCH_SYNC) take_sync(ticks, version, &batch);
}

/* Computes as the reader does (lib/online/trace), so that a verdict's first_ns and last_ns are on the same scale. */
static int64_t to_ns(const struct tc_clock_ticks *ticks, uint64_t at) {
  double ns = (double)at * (1.0 / ((double)ticks->frequency / 1e9));

  return ns < 9e18 ? (int64_t)ns : 0;
}

void tc_clock_ticks_put(const struct tc_clock_ticks *ticks, generation_meta *generation) {
  if (!ticks->any || ticks->frequency == 0) return;
  generation->batches_first_ns = to_ns(ticks, ticks->first);
  generation->batches_last_ns = to_ns(ticks, ticks->last);
  if (ticks->snapshot_wall_ns == 0) return;
  generation->clock_ns = to_ns(ticks, ticks->snapshot);
  generation->clock_wall_ns = ticks->snapshot_wall_ns;
}

/* ---- what is known ---- */

struct span {
  int64_t first_ns, last_ns; /* trace clock */
};

/* Returns the span from first to last event; if ordering failed, that of the batches: the runtime writes the last
 * batches, stacks and strings, when the generation ends. */
static struct span span_of(const generation_meta *g) {
  bool whole = g->verdict != NULL && g->verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  bool has_batches = g->batches_last_ns > g->batches_first_ns;

  if ((whole && g->last_ns >= g->first_ns) || !has_batches)
    return (struct span){ g->first_ns, g->last_ns };
  return (struct span){ g->batches_first_ns, g->batches_last_ns };
}

static uint64_t moved(uint64_t wall_ns, int64_t from_ns, int64_t to_ns) {
  uint64_t by;

  if (to_ns < from_ns) {
    by = (uint64_t)from_ns - (uint64_t)to_ns;
    return by < wall_ns ? wall_ns - by : 1;
  }
  by = (uint64_t)to_ns - (uint64_t)from_ns;
  return by < INT64_MAX - wall_ns ? wall_ns + by : INT64_MAX;
}

struct tc_wall tc_generation_wall(const generation_meta *g, uint64_t arrived_ns) {
  struct span span = span_of(g);
  struct tc_wall wall = { .estimated = true };

  if (span.last_ns < span.first_ns) span.last_ns = span.first_ns;
  if (g->clock_wall_ns != 0 && g->clock_wall_ns < INT64_MAX) {
    if (span.first_ns == 0 && span.last_ns == 0) span.first_ns = span.last_ns = g->clock_ns;
    return (struct tc_wall){ .first_ns = moved(g->clock_wall_ns, g->clock_ns, span.first_ns),
                             .last_ns = moved(g->clock_wall_ns, g->clock_ns, span.last_ns) };
  }
  wall.last_ns = g->end_wall_ns != 0 ? g->end_wall_ns : arrived_ns;
  if (wall.last_ns > INT64_MAX) wall.last_ns = INT64_MAX;
  if (wall.last_ns != 0) wall.first_ns = moved(wall.last_ns, span.last_ns, span.first_ns);
  return wall;
}

struct tc_wall tc_meta_wall(const tc_meta *meta) {
  struct tc_wall all = { .first_ns = meta->first_wall_ns, .last_ns = meta->last_wall_ns };

  all.estimated = meta->n_generations == 0;
  for (size_t i = 0; i < meta->n_generations; i++) {
    struct tc_wall one = tc_generation_wall(meta->generations[i], meta->last_wall_ns);
    if (i == 0 || one.first_ns < all.first_ns) all.first_ns = one.first_ns;
    if (i == 0 || one.last_ns > all.last_ns) all.last_ns = one.last_ns;
    all.estimated |= one.estimated;
  }
  return all;
}
