/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/stretches.h"

#include "base/grow.h"

tb_rc to_stretches_add(struct to_stretches *s, struct tb_mem *mem, to_ns from, to_ns until) {
  if (until <= from) return TB_OK;
  TB_TRY(TB_MEM_GROW(mem, s->one, s->room, s->n));
  while (s->n > 0 && s->one[s->n - 1].until >= from) {
    const struct to_stretch *last = &s->one[--s->n];
    if (last->from < from) from = last->from;
    if (last->until > until) until = last->until;
  }
  s->one[s->n++] = (struct to_stretch){ from, until };
  return TB_OK;
}

void to_stretches_fini(struct to_stretches *s, struct tb_mem *mem) {
  tb_mem_free(mem, s->one, s->room * sizeof(*s->one));
  *s = (struct to_stretches){ 0 };
}

/* Returns the index of the first stretch that ends after time. */
static size_t first_after(const struct to_stretches *s, to_ns time) {
  size_t low = 0, high = s->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->one[middle].until <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static struct to_stretch clip(struct to_stretch one, to_ns from, to_ns until) {
  return (struct to_stretch){ one.from > from ? one.from : from,
                              one.until < until ? one.until : until };
}

uint64_t to_stretches_cover(const struct to_stretches *s, to_ns from, to_ns until) {
  uint64_t total = 0;

  for (size_t i = first_after(s, from); i < s->n && s->one[i].from < until; i++) {
    struct to_stretch part = clip(s->one[i], from, until);
    total += (uint64_t)(part.until - part.from);
  }
  return total;
}

uint64_t to_stretches_cover_without(const struct to_stretches *s, const struct to_stretches *others,
                                    to_ns from, to_ns until) {
  uint64_t total = 0;

  for (size_t i = first_after(s, from); i < s->n && s->one[i].from < until; i++) {
    struct to_stretch part = clip(s->one[i], from, until);
    total += (uint64_t)(part.until - part.from) - to_stretches_cover(others, part.from, part.until);
  }
  return total;
}
