/* SPDX-License-Identifier: Apache-2.0 */
/* Since when a range is active is left to analysis/durations.h; here are the sums of those that have ended, and the
 * part of them that lies after the last Sync. */
#include "analysis/range_time.h"

#include "analysis/durations.h"
#include "base/grow.h"

struct sum {
  enum to_range_kind kind;
  int64_t id;
  uint64_t ended, ns;
  uint64_t sync; /* number of the Sync that synced_ns counts from */
  uint64_t synced_ns;
  bool lower_bound;
};

struct to_range_times {
  struct tb_mem *mem;
  struct to_durations durations;
  struct tb_map places; /* kind and id: index of a sum */
  struct sum *sum;
  size_t n, room;
  uint64_t syncs;
  bool heard;
  to_ns sync, now;
  to_ns from; /* when sums began: what was active before counts from here */
};

static uint64_t key_of(enum to_range_kind kind, int64_t id) {
  enum { KIND_BITS = 3 };

  return (uint64_t)id << KIND_BITS | (uint64_t)kind;
}

static bool is_summed(enum to_range_kind kind) {
  return kind == TO_RANGE_STW || kind == TO_RANGE_GC_MARK || kind == TO_RANGE_GC_SWEEP ||
         kind == TO_RANGE_GC_MARK_ASSIST;
}

tb_rc to_range_times_new(struct tb_mem *mem, struct to_range_times **out) {

  TB_TRY(tb_mem_take(mem, sizeof **out, out));
  (*out)->mem = mem;
  to_durations_init(&(*out)->durations, mem);
  tb_map_init(&(*out)->places, mem, tb_seed());
  return TB_OK;
}

void to_range_times_free(struct to_range_times *times) {
  if (times == NULL) return;
  to_durations_fini(&times->durations);
  tb_map_fini(&times->places);
  tb_mem_give(times->mem, times->sum, times->room * sizeof *times->sum);
  tb_mem_give(times->mem, times, sizeof *times);
}

static tb_rc sum_of(struct to_range_times *times, const struct to_event_range *range,
                    struct sum **out) {
  const uint64_t *known = tb_map_find(&times->places, key_of(range->kind, range->id));
  uint64_t *place;

  if (known != NULL) {
    *out = &times->sum[*known];
    return TB_OK;
  }
  TB_TRY(TB_MEM_GROW(times->mem, times->sum, times->room, times->n));
  TB_TRY(tb_map_put(&times->places, key_of(range->kind, range->id), &place, NULL));
  *place = times->n;
  *out = &times->sum[times->n++];
  **out = (struct sum){ .kind = range->kind, .id = range->id };
  return TB_OK;
}

static uint64_t between(to_ns from, to_ns until) {
  return until > from ? (uint64_t)(until - from) : 0;
}

static to_ns later(to_ns a, to_ns b) {
  return a > b ? a : b;
}

/* A range that began at `since` has ended now. */
static void add(struct to_range_times *times, struct sum *sum, to_ns since) {
  if (sum->sync != times->syncs) sum->synced_ns = 0;
  sum->sync = times->syncs;
  sum->ended++;
  sum->ns += between(later(since, times->from), times->now);
  sum->synced_ns += between(later(since, later(times->from, times->sync)), times->now);
}

static void take_clock(struct to_range_times *times, const struct to_event *ev) {
  times->now = ev->time;
  if (!times->heard) times->sync = times->from = ev->time;
  times->heard = true;
  if (ev->type != TW_EV_SYNC) return;
  times->sync = ev->time;
  times->syncs++;
}

tb_rc to_range_times_event(struct to_range_times *times, const struct to_event *ev) {
  struct to_event_range range;
  struct to_duration lasted;
  struct sum *sum;
  bool lower_bound;
  to_ns since;

  take_clock(times, ev);
  bool is_range = to_event_range(ev, &range) && is_summed(range.kind);
  bool ends = is_range && range.phase == TO_KIND_RANGE_END &&
              to_durations_range(&times->durations, range.kind, range.id, &since, &lower_bound);
  TB_TRY(to_durations_event(&times->durations, ev, &lasted));
  if (!is_range || (range.phase == TO_KIND_RANGE_END && !ends)) return TB_OK;
  TB_TRY(sum_of(times, &range, &sum));
  if (ends) {
    sum->lower_bound |= lower_bound;
    add(times, sum, since);
  }
  return TB_OK;
}

to_ns to_range_times_sync(const struct to_range_times *times) {
  return times->sync;
}

static void look(const struct to_range_times *times, const struct sum *sum,
                 struct to_range_time *out) {
  bool lower_bound;
  to_ns since;

  *out = (struct to_range_time){ .kind = sum->kind,
                                 .id = sum->id,
                                 .ended = sum->ended,
                                 .total_ns = sum->ns,
                                 .since_sync_ns = sum->sync == times->syncs ? sum->synced_ns : 0,
                                 .lower_bound = sum->lower_bound };
  out->active = to_durations_range(&times->durations, sum->kind, sum->id, &since, &lower_bound);
  if (!out->active) return;
  out->lower_bound |= lower_bound;
  out->total_ns += between(later(since, times->from), times->now);
  out->since_sync_ns += between(later(since, later(times->from, times->sync)), times->now);
}

bool to_range_times_find(const struct to_range_times *times, enum to_range_kind kind, int64_t id,
                         struct to_range_time *out) {
  const uint64_t *place = tb_map_find(&times->places, key_of(kind, id));

  *out = (struct to_range_time){ .kind = kind, .id = id };
  if (place == NULL) return false;
  look(times, &times->sum[*place], out);
  return true;
}

bool to_range_times_next(const struct to_range_times *times, size_t *pos,
                         struct to_range_time *out) {
  if (*pos == times->n) return false;
  look(times, &times->sum[(*pos)++], out);
  return true;
}

void to_range_times_epoch(struct to_range_times *times) {
  to_durations_epoch(&times->durations);
}

void to_range_times_clear(struct to_range_times *times) {
  struct to_range_time row;
  size_t kept = 0;

  for (size_t i = 0; i < times->n; i++) {
    struct sum sum = times->sum[i];
    uint64_t key = key_of(sum.kind, sum.id);
    look(times, &sum, &row);
    uint64_t *place = tb_map_find(&times->places, key);
    if (!row.active) {
      tb_map_remove(&times->places, key);
      continue;
    }
    *place = kept;
    times->sum[kept++] = (struct sum){ .kind = sum.kind, .id = sum.id };
  }
  times->n = kept;
  times->from = times->now;
}
