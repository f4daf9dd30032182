/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and regions overlap, and a generation does not restate open ones. The parts of a task or region are joined. Each task
 * or region gets the first free row; those shorter than a pixel share one row after all others. */
#include <stdlib.h>

#include "base/grow.h"
#include "base/hash.h"
#include "online/scene/picture_work.h"

struct piece {
  struct to_stroke stroke;
  int64_t id;
  uint8_t kind, row;
};

struct to_rows {
  struct piece *piece;
  size_t n, room;
  struct tb_map open; /* index of the open piece, by key_of() */
};

tb_rc to__rows_new(struct to_picture *p, struct to_rows **out) {
  TB_TRY(tb_mem_alloc(p->mem, sizeof **out, out));
  tb_map_init(&(*out)->open, p->mem, tb_seed());
  return TB_OK;
}

void to__rows_free(struct to_picture *p, struct to_rows *rows) {
  if (rows == NULL) return;
  tb_map_fini(&rows->open);
  tb_mem_free(p->mem, rows->piece, rows->room * sizeof *rows->piece);
  tb_mem_free(p->mem, rows, sizeof *rows);
}

/* Identifies a task by its id, a region by goroutine and name. If two have one key, the later one is open. */
static uint64_t key_of(enum to_lane_kind kind, int64_t id, const struct to_stroke *s) {
  const uint64_t words[] = { kind, (uint64_t)id, s->subject, kind == TO_LANE_TASK ? 0 : s->name };

  return tb_hash(TB_HASH_START, words, sizeof words);
}

tb_rc to__rows_add(struct to_picture *p, struct to_rows *rows, enum to_lane_kind kind, int64_t id,
                   const struct to_stroke *stroke) {
  uint64_t key = key_of(kind, id, stroke), *open;

  if (stroke->from >= p->ask.until) return TB_OK;
  if (!stroke->from_known && (open = tb_map_find(&rows->open, key)) != NULL) {
    struct piece *piece = &rows->piece[*open];

    piece->stroke.until = stroke->until;
    piece->stroke.open = stroke->open;
    if (!stroke->open) (void)tb_map_remove(&rows->open, key);
    return TB_OK;
  }
  if (!stroke->open && stroke->until <= p->ask.from) return TB_OK;
  TB_TRY(TB_MEM_GROW(p->mem, rows->piece, rows->room, rows->n));
  if (stroke->open) {
    TB_TRY(tb_map_put(&rows->open, key, &open, NULL));
    *open = rows->n;
  }
  rows->piece[rows->n++] = (struct piece){ .stroke = *stroke, .id = id, .kind = (uint8_t)kind };
  return TB_OK;
}

/* By lane, then by begin, longest first: an inner piece is below the outer one. */
static int compare(const void *a, const void *b) {
  const struct piece *one = a, *other = b;
  const struct to_stroke *s = &one->stroke, *t = &other->stroke;

  if (one->kind != other->kind) return (one->kind > other->kind) - (one->kind < other->kind);
  if (one->id != other->id) return (one->id > other->id) - (one->id < other->id);
  if (s->from != t->from) return (s->from > t->from) - (s->from < t->from);
  if (s->until != t->until) return (s->until < t->until) - (s->until > t->until);
  return (s->subject > t->subject) - (s->subject < t->subject);
}

enum { NO_ROW = UINT8_MAX };

static bool is_short(const struct to_picture *p, const struct piece *piece) {
  return (uint64_t)piece->stroke.until - (uint64_t)piece->stroke.from < (uint64_t)p->px_ns;
}

/* Chooses a piece's row. busy: the end of the last piece in each row. Returns the number of rows used. */
static unsigned find_row(struct to_picture *p, struct piece *piece, to_ns busy[TO_PICTURE_ROWS],
                         unsigned rows) {
  unsigned row = 0;

  while (row < rows && busy[row] > piece->stroke.from) row++;
  if (row == TO_PICTURE_ROWS) {
    p->left_out++;
    piece->row = NO_ROW;
    return rows;
  }
  busy[row] = piece->stroke.until;
  piece->row = (uint8_t)row;
  return row == rows ? rows + 1 : rows;
}

static tb_rc draw_piece(struct to_picture *p, const struct piece *piece) {
  size_t lane;

  if (piece->row == NO_ROW) return TB_OK;
  TB_TRY(to__lane(p, (enum to_lane_kind)piece->kind, piece->id, piece->row, 0, &lane));
  return to__draw(p, &p->lane[lane], &piece->stroke);
}

/* Draws the pieces of one lane. */
static tb_rc draw_lane(struct to_picture *p, struct piece *piece, size_t n) {
  to_ns busy[TO_PICTURE_ROWS];
  unsigned rows = 0;

  for (size_t i = 0; i < n; i++)
    if (!is_short(p, &piece[i])) rows = find_row(p, &piece[i], busy, rows);
  for (size_t i = 0; i < n; i++) {
    if (is_short(p, &piece[i])) piece[i].row = (uint8_t)rows;
    TB_TRY(draw_piece(p, &piece[i]));
  }
  return TB_OK;
}

tb_rc to__rows_draw(struct to_picture *p, struct to_rows *rows) {
  size_t n;

  if (rows->n == 0) return TB_OK;
  /* Pieces that have not ended since their generation ended are still open. */
  for (size_t i = 0; i < rows->n; i++)
    if (rows->piece[i].stroke.open) rows->piece[i].stroke.until = p->ask.until;
  qsort(rows->piece, rows->n, sizeof *rows->piece, compare);
  for (size_t i = 0; i < rows->n; i += n) {
    const struct piece *first = &rows->piece[i];

    for (n = 1; i + n < rows->n; n++)
      if (first[n].kind != first->kind || first[n].id != first->id) break;
    TB_TRY(draw_lane(p, &rows->piece[i], n));
  }
  return TB_OK;
}
