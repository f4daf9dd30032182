/* SPDX-License-Identifier: Apache-2.0 */
/* The total up to a moment is the time since all earlier begins minus the time since all earlier ends. */
#include "online/explain/crowd.h"

#include <stdlib.h>

static size_t count(const struct to_timeline *t) {
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++)
    for (size_t k = 0; k < t->history[i].n; k++) n += t->history[i].span[k].state == TO_GO_RUNNABLE;
  return n;
}

static int by_time(const void *a, const void *b) {
  to_ns x = ((const struct to_crowd_edge *)a)->at, y = ((const struct to_crowd_edge *)b)->at;

  return (x > y) - (x < y);
}

static void sum_up(struct to_crowd_edge *edge, size_t n) {
  uint64_t sum = 0;

  qsort(edge, n, sizeof *edge, by_time);
  for (size_t i = 0; i < n; i++) {
    edge[i].before = sum;
    sum += (uint64_t)edge[i].at - (uint64_t)edge[0].at;
  }
}

tb_rc to_crowd_new(struct to_crowd *c, const struct to_timeline *t, struct tb_mem *mem) {
  *c = (struct to_crowd){ .mem = mem, .room = count(t) };
  if (c->room == 0) return TB_OK;
  tb_rc rc = tb_mem_alloc(mem, c->room * sizeof *c->begin, &c->begin);
  if (rc == TB_OK) rc = tb_mem_alloc(mem, c->room * sizeof *c->end, &c->end);
  if (rc != TB_OK) {
    to_crowd_fini(c);
    return rc;
  }
  for (size_t i = 0; i < t->n; i++)
    for (size_t k = 0; k < t->history[i].n; k++) {
      const struct to_moment_span *span = &t->history[i].span[k];
      if (span->state != TO_GO_RUNNABLE) continue;
      c->begin[c->n].at = span->from;
      c->end[c->n++].at = span->until;
    }
  sum_up(c->begin, c->n);
  sum_up(c->end, c->n);
  return TB_OK;
}

void to_crowd_fini(struct to_crowd *c) {
  if (c->mem != NULL) {
    tb_mem_free(c->mem, c->begin, c->begin == NULL ? 0 : c->room * sizeof *c->begin);
    tb_mem_free(c->mem, c->end, c->end == NULL ? 0 : c->room * sizeof *c->end);
  }
  *c = (struct to_crowd){ 0 };
}

/* Returns the sum of the times from each edge before time up to time. */
static uint64_t since(const struct to_crowd_edge *edge, size_t n, to_ns time) {
  size_t low = 0, high = n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (edge[middle].at < time)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return 0;
  uint64_t distances = edge[low - 1].before + ((uint64_t)edge[low - 1].at - (uint64_t)edge[0].at);
  return low * ((uint64_t)time - (uint64_t)edge[0].at) - distances;
}

static uint64_t total_until(const struct to_crowd *c, to_ns time) {
  return since(c->begin, c->n, time) - since(c->end, c->n, time);
}

uint64_t to_crowd_time(const struct to_crowd *c, to_ns from, to_ns until) {
  return c->n == 0 || until <= from ? 0 : total_until(c, until) - total_until(c, from);
}
