/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/path_sum.h"

#include <stdlib.h>

#include "base/grow.h"

static uint64_t length(const struct to_path_piece *p) {
  return (uint64_t)p->until - (uint64_t)p->from;
}

static void add_piece(struct to_path_times *times, const struct to_path_piece *p) {
  uint64_t rest = length(p) - p->stopped_ns - p->assist_ns;
  enum to_path_part part = TO_PATH_NOT_KNOWN;

  if (p->state == TO_GO_RUNNING) part = TO_PATH_CPU;
  if (p->state == TO_GO_RUNNABLE) part = TO_PATH_RUNNABLE;
  if (p->state == TO_GO_SYSCALL) part = TO_PATH_SYSCALL;
  if (p->state == TO_GO_WAITING) part = TO_PATH_WAITING;
  times->total += length(p);
  times->ns[part] += rest;
  times->ns[TO_PATH_STOPPED] += p->stopped_ns;
  times->ns[TO_PATH_ASSIST] += p->assist_ns;
}

static tb_rc add_other(struct to_path_sum *s, struct tb_map *places, const struct to_path *path,
                       size_t i) {
  const struct to_path_piece *p = &path->piece[i];
  uint64_t *place;
  bool fresh;

  TB_TRY(tb_map_put(places, p->history == NULL ? 0 : p->history->life, &place, &fresh));
  if (fresh) {
    TB_TRY(TB_MEM_GROW(s->mem, s->behind, s->room, s->n));
    s->behind[s->n] = (struct to_path_behind){ .history = p->history, .longest = i };
    *place = s->n++;
  }
  struct to_path_behind *behind = &s->behind[*place];
  if (length(p) > length(&path->piece[behind->longest])) behind->longest = i;
  add_piece(&behind->times, p);
  s->behind_total += length(p);
  return TB_OK;
}

static int by_total(const void *a, const void *b) {
  const struct to_path_behind *x = a, *y = b;

  if (x->times.total != y->times.total) return x->times.total < y->times.total ? 1 : -1;
  return (x->longest > y->longest) - (x->longest < y->longest);
}

static tb_rc add_all(struct to_path_sum *s, struct tb_map *places, const struct to_path *path,
                     uint64_t life) {
  for (size_t i = 0; i < path->n; i++) {
    const struct to_path_piece *p = &path->piece[i];
    if (p->history == NULL || p->history->life != life) {
      TB_TRY(add_other(s, places, path, i));
      continue;
    }
    add_piece(&s->own, p);
    if (p->state == TO_GO_WAITING) s->own_waiting[p->reason] += length(p);
  }
  return TB_OK;
}

tb_rc to_path_sum_new(struct to_path_sum *s, const struct to_path *path, uint64_t life,
                      struct tb_mem *mem) {
  struct tb_map places;

  *s = (struct to_path_sum){ .mem = mem };
  tb_map_init(&places, mem, tb_seed());
  tb_rc rc = add_all(s, &places, path, life);
  tb_map_fini(&places);
  if (rc != TB_OK) to_path_sum_fini(s);
  if (s->n > 1) qsort(s->behind, s->n, sizeof(*s->behind), by_total);
  return rc;
}

void to_path_sum_fini(struct to_path_sum *s) {
  if (s->mem != NULL) tb_mem_free(s->mem, s->behind, s->room * sizeof(*s->behind));
  *s = (struct to_path_sum){ 0 };
}
