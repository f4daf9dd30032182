/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the goroutines in each state for each pixel. Stretches that cover whole pixels are counted where they begin and
 * end, so a long stretch costs no more than a short one. */
#include "online/scene/picture_work.h"

enum { CLASSES = 4, COUNT_ONE = 256 };

static const uint8_t class_of[TO_LOOKS] = {
  [TO_LOOK_RUNNING] = 0,      [TO_LOOK_RUNNABLE] = 1,    [TO_LOOK_SYSCALL] = 2,
  [TO_LOOK_SYSCALL_NO_P] = 2, [TO_LOOK_WAITING] = 3,     [TO_LOOK_WAITING_SYNC] = 3,
  [TO_LOOK_WAITING_CHAN] = 3, [TO_LOOK_WAITING_NET] = 3, [TO_LOOK_WAITING_SLEEP] = 3,
  [TO_LOOK_WAITING_GC] = 3,
};
static const uint8_t look_of[CLASSES] = { TO_LOOK_RUNNING, TO_LOOK_RUNNABLE, TO_LOOK_SYSCALL,
                                          TO_LOOK_WAITING };

struct to_counts {
  size_t bytes; /* of the whole struct */
  struct count_pixel {
    float ns[CLASSES];      /* time of stretches that cover a part of the pixel */
    int32_t begin[CLASSES]; /* stretches that cover whole pixels from here on, minus ended ones */
  } pixel[];
};

tb_rc to__counts_new(struct to_picture *p, struct to_counts **out) {
  size_t bytes = sizeof **out + (p->ask.px + 2) * sizeof(struct count_pixel);

  TB_TRY(tb_mem_alloc(p->mem, bytes, out));
  (*out)->bytes = bytes;
  return TB_OK;
}

void to__counts_free(struct to_picture *p, struct to_counts *counts) {
  if (counts != NULL) tb_mem_free(p->mem, counts, counts->bytes);
}

void to__counts_add(const struct to_picture *p, struct to_counts *counts,
                    const struct to_scene_span *span) {
  to_ns from = span->from > p->ask.from ? span->from : p->ask.from;
  to_ns until = span->until < p->ask.until ? span->until : p->ask.until;
  unsigned which = class_of[span->look];

  if (until <= from) return;
  uint64_t first = (uint64_t)(from - p->ask.from), last = (uint64_t)(until - p->ask.from);
  uint64_t px = (uint64_t)p->px_ns, begin = first / px, end = last / px;
  if (begin == end) {
    counts->pixel[begin].ns[which] += (float)(last - first);
    return;
  }
  counts->pixel[begin].ns[which] += (float)((begin + 1) * px - first);
  counts->pixel[end].ns[which] += (float)(last - end * px);
  counts->pixel[begin + 1].begin[which]++;
  counts->pixel[end].begin[which]--;
}

/* Returns the average number in pixel i, which may be narrow. covering: sum of begin[] so far. */
static double average(const struct to_picture *p, const struct to_counts *counts, unsigned i,
                      unsigned which, int64_t *covering) {
  const struct count_pixel *pixel = &counts->pixel[i];
  to_ns left = p->ask.until - p->ask.from - (to_ns)i * p->px_ns;
  to_ns width = left < p->px_ns ? left : p->px_ns;

  *covering += pixel->begin[which];
  return width <= 0 ? 0 : (double)*covering + (double)pixel->ns[which] / (double)width;
}

static struct to_cell cell_at(const struct to_picture *p, unsigned i) {
  to_ns at = p->ask.from + (to_ns)i * p->px_ns;

  return (struct to_cell){ .from = to__unit_of(p, at),
                           .until = to__unit_of(p, at + p->px_ns),
                           .flags = TO_CELL_MIXED };
}

static tb_rc put_or_join(struct to_picture *p, struct to_lane *lane, const struct to_cell *cell) {
  struct to_cell *last = lane->cells > 0 ? &lane->cell[lane->cells - 1] : NULL;

  if (cell->from == cell->until) return TB_OK;
  if (last == NULL || last->until != cell->from || last->look != cell->look ||
      last->share != cell->share || last->subject != cell->subject)
    return to__put_cell(p, lane, cell);
  last->until = cell->until;
  return TB_OK;
}

static uint16_t share_of(double count) {
  double share = count * COUNT_ONE + 0.5;

  return (uint16_t)(share < UINT16_MAX ? share : UINT16_MAX);
}

tb_rc to__counts_draw_group(struct to_picture *p, struct to_counts *counts, struct to_lane *lane) {
  int64_t covering[CLASSES] = { 0 };

  for (unsigned i = 0; i < p->ask.px; i++) {
    struct to_cell cell = cell_at(p, i);
    double most = 0;

    for (unsigned which = 0; which < CLASSES; which++) {
      double n = average(p, counts, i, which, &covering[which]);
      bool gives_way =
          which == CLASSES - 1 && share_of(most) > 0; /* waiting gives way to anything else */

      if (n <= most || gives_way) continue;
      most = n;
      cell.look = look_of[which];
    }
    cell.share = share_of(most);
    if (cell.share > 0) TB_TRY(put_or_join(p, lane, &cell));
  }
  return TB_OK;
}

tb_rc to__counts_draw(struct to_picture *p, struct to_counts *counts, unsigned which,
                      struct to_lane *lane) {
  int64_t covering = 0;

  for (unsigned i = 0; i < p->ask.px; i++) {
    struct to_cell cell = cell_at(p, i);

    cell.value = average(p, counts, i, which, &covering);
    cell.look = look_of[which];
    TB_TRY(put_or_join(p, lane, &cell));
  }
  return TB_OK;
}
