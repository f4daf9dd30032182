/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/grow.h"
#include "online/scene/picture_work.h"

enum { SHARE_ALL = 65535, SHARE_ALIKE = SHARE_ALL / 32 };

struct to_cell_builder {
  to_ns drawn_until; /* no cell reaches further */
  bool last_is_open; /* the last cell was open at its generation's end */
  /* The current pixel, not drawn yet: */
  bool has;
  to_ns pixel; /* its begin */
  uint64_t ns[TO_LOOKS];
  uint64_t subject;
  uint32_t name;
  bool is_one;              /* all of it has the same subject and name */
  struct to_stroke unended; /* its last stroke, if that is open; otherwise open is false */
  /* The current value: */
  bool has_value;
  to_ns at;
  double value;
};

uint32_t to__unit_of(const struct to_picture *p, to_ns at) {
  if (at <= p->ask.from) return 0;
  if (at > p->ask.until) at = p->ask.until;
  return (uint32_t)((at - p->ask.from) / p->unit);
}

tb_rc to__put_cell(struct to_picture *p, struct to_lane *lane, const struct to_cell *cell) {
  TB_TRY(TB_MEM_GROW(p->mem, lane->cell, lane->room, lane->cells));
  lane->cell[lane->cells++] = *cell;
  return TB_OK;
}

static tb_rc builder_of(struct to_picture *p, struct to_lane *lane) {
  if (lane->builder != NULL) return TB_OK;
  TB_TRY(tb_mem_alloc(p->mem, sizeof *lane->builder, &lane->builder));
  lane->builder->drawn_until = p->ask.from;
  return TB_OK;
}

void to__cell_builder_free(struct to_picture *p, struct to_lane *lane) {
  tb_mem_free(p->mem, lane->builder, sizeof *lane->builder);
  lane->builder = NULL;
}

/* ---- strokes shorter than a pixel ---- */

static bool is_waiting(unsigned look) {
  return look >= TO_LOOK_WAITING && look <= TO_LOOK_WAITING_GC;
}

static unsigned most_of(const struct to_cell_builder *b) {
  unsigned most = TO_LOOK_WAITING;
  bool any = false;

  for (unsigned look = 0; look < TO_LOOKS; look++)
    if (b->ns[look] > 0 && !is_waiting(look) && (!any || b->ns[look] > b->ns[most])) {
      most = look;
      any = true;
    }
  for (unsigned look = TO_LOOK_WAITING; !any && look <= TO_LOOK_WAITING_GC; look++)
    if (b->ns[look] > b->ns[most]) most = look;
  return most;
}

static bool are_alike(const struct to_cell *a, const struct to_cell *b) {
  int apart = (int)a->share - (int)b->share;

  return (a->flags & TO_CELL_MIXED) && a->look == b->look && a->until == b->from &&
         apart < SHARE_ALIKE && apart > -SHARE_ALIKE;
}

static tb_rc put_mixed(struct to_picture *p, struct to_lane *lane, const struct to_cell *cell) {
  struct to_cell *last = lane->cells > 0 ? &lane->cell[lane->cells - 1] : NULL;

  if (last == NULL || !are_alike(last, cell)) return to__put_cell(p, lane, cell);
  last->until = cell->until;
  if (last->subject != cell->subject) last->subject = 0;
  if (last->name != cell->name) last->name = 0;
  return TB_OK;
}

/* Draws the current pixel. limit: the begin of the next stroke. */
static tb_rc flush(struct to_picture *p, struct to_lane *lane, to_ns limit) {
  struct to_cell_builder *b = lane->builder;
  to_ns from = b->pixel > b->drawn_until ? b->pixel : b->drawn_until;
  to_ns until = b->pixel + p->px_ns < limit ? b->pixel + p->px_ns : limit;

  if (!b->has) return TB_OK;
  b->has = b->unended.open = false;
  b->last_is_open = false;
  if (until <= from) return TB_OK;
  unsigned look = most_of(b);
  if (b->ns[look] == 0) return TB_OK; /* its strokes became part of a longer one: take_up() */
  uint64_t share = b->ns[look] * SHARE_ALL / (uint64_t)p->px_ns;
  const struct to_cell cell = { .subject = b->is_one ? b->subject : 0,
                                .from = to__unit_of(p, from),
                                .until = to__unit_of(p, until),
                                .name = b->is_one ? b->name : 0,
                                .share = (uint16_t)(share < SHARE_ALL ? share : SHARE_ALL),
                                .look = (uint8_t)look,
                                .flags = TO_CELL_MIXED };
  b->drawn_until = until;
  return put_mixed(p, lane, &cell);
}

static tb_rc gather(struct to_picture *p, struct to_lane *lane, const struct to_stroke *s) {
  struct to_cell_builder *b = lane->builder;
  to_ns pixel = p->ask.from + (s->from - p->ask.from) / p->px_ns * p->px_ns;

  if (b->has && b->pixel != pixel) TB_TRY(flush(p, lane, s->from));
  if (!b->has) {
    memset(b->ns, 0, sizeof b->ns);
    b->has = b->is_one = true;
    b->pixel = pixel;
    b->subject = s->subject;
    b->name = s->name;
  }
  b->ns[s->look] += (uint64_t)(s->until - s->from);
  b->unended = *s;
  b->is_one = b->is_one && b->subject == s->subject && b->name == s->name;
  return TB_OK;
}

/* ---- strokes of a pixel or longer ---- */

/* A generation restates that a goroutine waits, but not the reason. */
static bool are_one(uint8_t look, uint8_t restated) {
  return look == restated || (is_waiting(look) && restated == TO_LOOK_WAITING);
}

static bool goes_on(const struct to_lane *lane, const struct to_stroke *s) {
  const struct to_cell *last = lane->cells > 0 ? &lane->cell[lane->cells - 1] : NULL;

  return last != NULL && !lane->builder->has && lane->builder->last_is_open && !s->from_known &&
         are_one(last->look, s->look) && last->subject == s->subject;
}

/* Joins a stroke with its first part, which was left open in the current pixel. */
static void take_up(struct to_cell_builder *b, struct to_stroke *s) {
  const struct to_stroke *first = &b->unended;

  if (!b->has || !first->open || s->from_known || first->subject != s->subject ||
      !are_one(first->look, s->look))
    return;
  b->ns[first->look] -= (uint64_t)(first->until - first->from);
  s->from = first->from;
  s->from_known = first->from_known;
  s->look = first->look;
  b->unended.open = false;
}

static uint8_t flags_of(const struct to_picture *p, const struct to_stroke *s) {
  uint8_t flags = 0;

  if (!s->from_known || s->from < p->ask.from) flags |= TO_CELL_BEGAN_BEFORE;
  if (s->open || s->until > p->ask.until) flags |= TO_CELL_GOES_ON;
  return flags;
}

static tb_rc extend(struct to_picture *p, struct to_lane *lane, const struct to_stroke *s) {
  struct to_cell *last = &lane->cell[lane->cells - 1];

  if (s->until <= lane->builder->drawn_until) return TB_OK; /* the stream's time moved backwards */
  last->until = to__unit_of(p, s->until);
  last->flags = (uint8_t)((last->flags & ~TO_CELL_GOES_ON) | (flags_of(p, s) & TO_CELL_GOES_ON));
  lane->builder->drawn_until = s->until < p->ask.until ? s->until : p->ask.until;
  lane->builder->last_is_open = s->open;
  return TB_OK;
}

static tb_rc put_exact(struct to_picture *p, struct to_lane *lane, const struct to_stroke *s,
                       uint8_t flags) {
  const struct to_cell cell = { .subject = s->subject,
                                .from = to__unit_of(p, s->from),
                                .until = to__unit_of(p, s->until),
                                .name = s->name,
                                .share = SHARE_ALL,
                                .look = s->look,
                                .flags = flags };

  TB_TRY(flush(p, lane, s->from));
  TB_TRY(to__put_cell(p, lane, &cell));
  lane->builder->drawn_until = s->until;
  lane->builder->last_is_open = s->open;
  return TB_OK;
}

tb_rc to__draw(struct to_picture *p, struct to_lane *lane, const struct to_stroke *stroke) {
  struct to_stroke s = *stroke;

  if (s.until <= p->ask.from || s.from >= p->ask.until) return TB_OK;
  TB_TRY(builder_of(p, lane));
  if (goes_on(lane, &s)) return extend(p, lane, &s);
  take_up(lane->builder, &s);
  uint8_t flags = flags_of(p, &s);
  /* The whole length counts, not the visible part. A forged trace may have any times. */
  bool is_long = (uint64_t)s.until - (uint64_t)s.from >= (uint64_t)p->px_ns;
  if (s.from < lane->builder->drawn_until) s.from = lane->builder->drawn_until;
  if (s.until > p->ask.until) s.until = p->ask.until;
  if (s.until <= s.from) return TB_OK;
  return is_long ? put_exact(p, lane, &s, flags) : gather(p, lane, &s);
}

/* ---- moments and values ---- */

tb_rc to__draw_moment(struct to_picture *p, struct to_lane *lane, const struct to_stroke *s) {
  if (s->from < p->ask.from || s->from >= p->ask.until) return TB_OK;
  struct to_cell *last = lane->cells > 0 ? &lane->cell[lane->cells - 1] : NULL;
  uint32_t pixel = (uint32_t)(p->px_ns / p->unit);
  const struct to_cell cell = { .subject = s->subject,
                                .from = to__unit_of(p, s->from),
                                .until = to__unit_of(p, s->from),
                                .name = s->name,
                                .share = 1,
                                .look = s->look };

  if (last != NULL && cell.from < last->from) return TB_OK;
  if (last == NULL || cell.from - last->from >= (pixel > 0 ? pixel : 1))
    return to__put_cell(p, lane, &cell);
  last->flags |= TO_CELL_MIXED;
  if (last->share < SHARE_ALL) last->share++;
  return TB_OK;
}

/* Adds the current value's cell. Values within one pixel share a cell, with the greatest. */
static tb_rc put_value(struct to_picture *p, struct to_lane *lane, to_ns until) {
  struct to_cell *last = lane->cells > 0 ? &lane->cell[lane->cells - 1] : NULL;
  const struct to_cell_builder *b = lane->builder;
  const struct to_cell cell = { .value = b->value,
                                .from = to__unit_of(p, b->at),
                                .until = to__unit_of(p, until),
                                .share = SHARE_ALL,
                                .look = TO_LOOK_METRIC };

  if (!b->has_value || until <= p->ask.from || b->at >= p->ask.until || until <= b->at)
    return TB_OK;
  if (last != NULL && cell.from < last->until) return TB_OK;
  uint32_t pixel = (uint32_t)(p->px_ns / p->unit);
  bool is_short = cell.until - cell.from < pixel;
  if (last == NULL || !is_short || !(last->flags & TO_CELL_MIXED) ||
      cell.until - last->from > pixel) {
    TB_TRY(to__put_cell(p, lane, &cell));
    if (is_short) lane->cell[lane->cells - 1].flags = TO_CELL_MIXED;
    return TB_OK;
  }
  last->until = cell.until;
  if (cell.value > last->value) last->value = cell.value;
  return TB_OK;
}

tb_rc to__draw_value(struct to_picture *p, struct to_lane *lane, to_ns at, double value) {
  TB_TRY(builder_of(p, lane));
  TB_TRY(put_value(p, lane, at));
  lane->builder->has_value = true;
  lane->builder->at = at;
  lane->builder->value = value;
  return TB_OK;
}

tb_rc to__draw_end(struct to_picture *p, struct to_lane *lane, to_ns until) {
  if (lane->builder == NULL) return TB_OK;
  TB_TRY(put_value(p, lane, until));
  TB_TRY(flush(p, lane, p->ask.until));
  to__cell_builder_free(p, lane);
  return TB_OK;
}
