/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/timeline.h"

#include "base/grow.h"
#include "base/seed.h"

void to_timeline_init(struct to_timeline *t, struct tb_mem *mem, to_ns from, to_ns until) {
  *t = (struct to_timeline){ .mem = mem, .from = from, .until = until };
  tb_map_init(&t->by_life, mem, tb_seed());
}

void to_timeline_fini(struct to_timeline *t) {
  for (size_t i = 0; i < t->n; i++) {
    tb_mem_free(t->mem, t->history[i].span, t->history[i].room * sizeof(*t->history[i].span));
    to_stretches_fini(&t->history[i].assists, t->mem);
  }
  if (t->mem != NULL) {
    tb_mem_free(t->mem, t->history, t->room * sizeof(*t->history));
    to_stretches_fini(&t->stops, t->mem);
  }
  tb_map_fini(&t->by_life);
  *t = (struct to_timeline){ 0 };
}

static tb_rc find_or_add(struct to_timeline *t, const struct to_span *span,
                         struct to_history **out) {
  uint64_t *place;
  bool fresh;

  TB_TRY(tb_map_put(&t->by_life, span->life, &place, &fresh));
  if (fresh) {
    tb_rc rc = TB_MEM_GROW(t->mem, t->history, t->room, t->n);
    if (rc != TB_OK) {
      tb_map_remove(&t->by_life, span->life);
      return rc;
    }
    t->history[t->n] = (struct to_history){ .life = span->life, .goroutine = span->id };
    *place = ++t->n;
  }
  *out = &t->history[*place - 1];
  return TB_OK;
}

static tb_rc add_state(struct to_timeline *t, const struct to_span *span, uint32_t stack,
                       uint32_t by_stack) {
  struct to_history *history;

  TB_TRY(find_or_add(t, span, &history));
  to_ns begun = history->n > 0 ? history->span[history->n - 1].until : INT64_MIN;
  to_ns from = span->from > begun ? span->from : begun;
  if (span->until <= from) return TB_OK;
  TB_TRY(TB_MEM_GROW(t->mem, history->span, history->room, history->n));
  t->spans++;
  if (span->proc >= 0 && span->proc < UINT32_MAX && (uint32_t)span->proc >= t->procs)
    t->procs = (uint32_t)span->proc + 1;
  history->span[history->n++] = (struct to_moment_span){ .from = from,
                                                         .until = span->until,
                                                         .by_life = span->by_life,
                                                         .stack = stack,
                                                         .by_stack = by_stack,
                                                         .state = span->state,
                                                         .reason = span->reason,
                                                         .cause = span->cause,
                                                         .open = span->open,
                                                         .until_known = span->until_known };
  return TB_OK;
}

static tb_rc add_life(struct to_timeline *t, const struct to_span *span, uint32_t stack,
                      uint32_t creation_stack) {
  struct to_history *history;

  TB_TRY(find_or_add(t, span, &history));
  history->born = span->from;
  history->is_born = span->from_known;
  history->creator = span->by_life;
  history->entry_stack = stack;
  history->creation_stack = creation_stack;
  return TB_OK;
}

static tb_rc add_range(struct to_timeline *t, const struct to_span *span) {
  struct to_history *history;

  if (span->state == TO_RANGE_STW)
    return to_stretches_add(&t->stops, t->mem, span->from, span->until);
  if (span->state != TO_RANGE_GC_MARK_ASSIST || span->life == 0) return TB_OK;
  TB_TRY(find_or_add(t, span, &history));
  return to_stretches_add(&history->assists, t->mem, span->from, span->until);
}

tb_rc to_timeline_add(struct to_timeline *t, const struct to_span *span, uint32_t stack,
                      uint32_t by_stack) {
  if (span->until <= span->from || span->until <= t->from || span->from >= t->until) return TB_OK;
  if (span->kind == TO_SPAN_RANGE) return add_range(t, span);
  if (span->life == 0) return TB_OK;
  if (span->kind == TO_SPAN_GOROUTINE) return add_state(t, span, stack, by_stack);
  return span->kind == TO_SPAN_LIFE ? add_life(t, span, stack, by_stack) : TB_OK;
}

const struct to_history *to_timeline_find(const struct to_timeline *t, uint64_t life) {
  const uint64_t *place = tb_map_find(&t->by_life, life);

  return place == NULL ? NULL : &t->history[*place - 1];
}

/* Returns the number of spans that begin before time. */
static size_t begun_before(const struct to_history *history, to_ns time) {
  size_t low = 0, high = history->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (history->span[middle].from < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const struct to_moment_span *to_history_at(const struct to_history *history, to_ns time) {
  size_t n = begun_before(history, time);

  return n > 0 && history->span[n - 1].until >= time ? &history->span[n - 1] : NULL;
}

to_ns to_history_before(const struct to_history *history, to_ns time) {
  size_t n = begun_before(history, time);

  return n > 0 ? history->span[n - 1].until : INT64_MIN;
}
