/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/related.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/seed.h"

/* Returns the span's time within the timeline's part. */
static uint64_t time_in(const struct to_timeline *t, const struct to_moment_span *span) {
  to_ns from = span->from > t->from ? span->from : t->from;
  to_ns until = span->until < t->until ? span->until : t->until;

  return until > from ? (uint64_t)(until - from) : 0;
}

/* places: 1 + index in r by life; 0 for the subject. */
static tb_rc add_waker(struct to_related *r, const struct to_timeline *t, struct tb_map *places,
                       const struct to_moment_span *span, uint32_t depth) {
  const struct to_history *by = to_timeline_find(t, span->by_life);
  uint64_t *place;
  bool fresh;

  if (by == NULL) return TB_OK;
  if (r->n == TO_RELATED_MAX && tb_map_find(places, by->life) == NULL) {
    r->cut = true;
    return TB_OK;
  }
  TB_TRY(tb_map_put(places, by->life, &place, &fresh));
  if (fresh) {
    TB_TRY(TB_MEM_GROW(r->mem, r->one, r->room, r->n));
    r->one[r->n++] = (struct to_related_goroutine){ .history = by, .depth = depth };
    *place = r->n;
  }
  if (*place == 0 || r->one[*place - 1].depth != depth) return TB_OK;
  r->one[*place - 1].wakes++;
  r->one[*place - 1].waited_ns += time_in(t, span);
  return TB_OK;
}

static tb_rc add_wakers_of(struct to_related *r, const struct to_timeline *t, struct tb_map *places,
                           const struct to_history *history, uint32_t depth) {
  for (size_t i = 0; i < history->n; i++) {
    const struct to_moment_span *span = &history->span[i];
    if (span->state != TO_GO_WAITING || span->by_life == 0 || span->open) continue;
    if (span->until > t->until || time_in(t, span) == 0) continue; /* it ended after the part */
    TB_TRY(add_waker(r, t, places, span, depth));
  }
  return TB_OK;
}

static tb_rc add_all(struct to_related *r, const struct to_timeline *t, struct tb_map *places,
                     uint64_t life) {
  const struct to_history *subject = to_timeline_find(t, life);
  size_t begin = 0;
  uint64_t *place;

  if (subject == NULL) return TB_OK;
  TB_TRY(tb_map_put(places, life, &place, NULL));
  *place = 0;
  TB_TRY(add_wakers_of(r, t, places, subject, 1));
  for (uint32_t depth = 2; depth <= TO_RELATED_DEPTH; depth++) {
    size_t end = r->n;
    for (size_t i = begin; i < end; i++)
      TB_TRY(add_wakers_of(r, t, places, r->one[i].history, depth));
    begin = end;
  }
  return TB_OK;
}

static int in_order(const void *a, const void *b) {
  const struct to_related_goroutine *x = a, *y = b;

  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  if (x->waited_ns != y->waited_ns) return x->waited_ns < y->waited_ns ? 1 : -1;
  return (x->history->goroutine > y->history->goroutine) -
         (x->history->goroutine < y->history->goroutine);
}

tb_rc to_related_find(struct to_related *r, const struct to_timeline *t, uint64_t life,
                      struct tb_mem *mem) {
  struct tb_map places;

  *r = (struct to_related){ .mem = mem };
  tb_map_init(&places, mem, tb_seed());
  tb_rc rc = add_all(r, t, &places, life);
  tb_map_fini(&places);
  if (rc != TB_OK) to_related_fini(r);
  if (r->n > 1) qsort(r->one, r->n, sizeof *r->one, in_order);
  return rc;
}

void to_related_fini(struct to_related *r) {
  if (r->mem != NULL) tb_mem_free(r->mem, r->one, r->room * sizeof *r->one);
  *r = (struct to_related){ 0 };
}
