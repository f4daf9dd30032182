/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/longest.h"

#include <string.h>

#include "base/grow.h"
#include "window/top_rows.h"

enum { OLDER_MAX = 512 };

void to_longest_fini(struct to_longest *l, struct tb_mem *mem) {
  tb_mem_give(mem, l->older, l->older_room * sizeof(*l->older));
}

static to_ns length(const struct to_long_span *span) {
  return span->until - span->from;
}

static size_t shortest_of(const struct to_long_span *span, size_t n) {
  size_t at = 0;

  for (size_t i = 1; i < n; i++)
    if (length(&span[i]) < length(&span[at])) at = i;
  return at;
}

to_ns to_longest_note(struct to_longest *l, const struct to_long_span *span) {
  size_t at = l->n_open < TO_LONGEST ? l->n_open++ : shortest_of(l->open, TO_LONGEST);

  l->open[at] = *span;
  return l->n_open < TO_LONGEST ? -1 : length(&l->open[shortest_of(l->open, TO_LONGEST)]);
}

/* A span of an older slot matters while fewer than TO_LONGEST later ones are longer. Those are about
 * TO_LONGEST * log(slots); more than OLDER_MAX only where spans get ever shorter. */
static tb_rc keep(struct to_longest *l, struct tb_mem *mem, const struct to_long_span *span) {
  size_t kept = 0;

  for (size_t i = 0; i < l->n_older; i++) {
    struct to_long_span *older = &l->older[i];
    older->longer += length(span) > length(older);
    if (older->longer < TO_LONGEST) l->older[kept++] = *older;
  }
  l->n_older = kept;
  if (kept == OLDER_MAX) {
    size_t at = shortest_of(l->older, kept);
    l->n_older--;
    memmove(l->older + at, l->older + at + 1, (l->n_older - at) * sizeof(*l->older));
  }
  TB_TRY(TB_MEM_GROW(mem, l->older, l->older_room, l->n_older));
  l->older[l->n_older++] = *span;
  return TB_OK;
}

tb_rc to_longest_slot(struct to_longest *l, struct tb_mem *mem) {
  tb_rc rc = TB_OK;

  for (size_t i = 0; i < l->n_open && rc == TB_OK; i++) rc = keep(l, mem, &l->open[i]);
  l->n_open = 0;
  return rc;
}

static bool longer(const void *spans, uint32_t a, uint32_t b) {
  const struct to_long_span *x = (const struct to_long_span *)spans + a;
  const struct to_long_span *y = (const struct to_long_span *)spans + b;

  return length(x) != length(y) ? length(x) > length(y) : a < b;
}

tb_rc to_longest_since(const struct to_longest *l, to_ns time, struct tb_arena *arena,
                       const struct to_long_span **out, size_t *out_n) {
  struct to_long_span *span, *sorted;
  uint32_t *rank, n = 0;

  TB_TRY(tb_arena_take(arena, (l->n_older + TO_LONGEST) * sizeof(*span), &span));
  TB_TRY(tb_arena_take(arena, (l->n_older + TO_LONGEST) * sizeof(*rank), &rank));
  TB_TRY(tb_arena_take(arena, TO_LONGEST * sizeof(*sorted), &sorted));
  for (size_t i = 0; i < l->n_older + l->n_open; i++) {
    span[n] = i < l->n_older ? l->older[i] : l->open[i - l->n_older];
    rank[n] = n;
    n += span[n].until >= time;
  }
  to_top_rows(rank, n, TO_LONGEST, longer, span);
  *out_n = n < TO_LONGEST ? n : TO_LONGEST;
  for (size_t i = 0; i < *out_n; i++) sorted[i] = span[rank[i]];
  *out = sorted;
  return TB_OK;
}
