/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "online/scene/picture_work.h"

const char *to_lane_kind_name(enum to_lane_kind kind) {
  static const char *const names[] = {
    [TO_LANE_COUNT] = "count",   [TO_LANE_METRIC] = "metric",       [TO_LANE_RANGE] = "range",
    [TO_LANE_LOG] = "log",       [TO_LANE_SAMPLE] = "sample",       [TO_LANE_TASK] = "task",
    [TO_LANE_PROC] = "proc",     [TO_LANE_THREAD] = "thread",       [TO_LANE_GROUP] = "group",
    [TO_LANE_REGION] = "region", [TO_LANE_GOROUTINE] = "goroutine",
  };

  return names[kind];
}

enum { COUNTS = 4, ROWS_A_LANE = 256, NAME_UNKNOWN = UINT32_MAX };

struct to_picture_work {
  struct tb_map lane[TO_LANE_KINDS]; /* index by id and row */
  struct tb_map entry;               /* name by goroutine, also from earlier generations */
  struct to_rows *rows;
  struct to_counts *all;
  struct to_counts **group; /* by number of the lane */
  size_t groups_room, groups;
  to_ns until; /* end of the last generation */
  /* The generation that is being drawn: */
  const struct to_scene *scene;
  uint32_t *name;       /* the picture's number of a name, by the scene's */
  uint32_t *entry_name; /* the picture's number of a name, by goroutine */
};

static bool wants(const struct to_picture *p, enum to_lane_kind kind) {
  return (p->ask.kinds & (1u << kind)) != 0;
}

/* ---- lanes ---- */

static uint64_t key_of(int64_t id, unsigned row) {
  return (uint64_t)id * ROWS_A_LANE + row;
}

tb_rc to__lane(struct to_picture *p, enum to_lane_kind kind, int64_t id, unsigned row,
               uint32_t name, size_t *out) {
  uint64_t *number;
  bool is_fresh;

  TB_TRY(tb_map_put(&p->work->lane[kind], key_of(id, row), &number, &is_fresh));
  if (is_fresh) {
    TB_TRY(TB_MEM_GROW(p->mem, p->lane, p->lanes_room, p->lanes));
    p->lane[p->lanes] =
        (struct to_lane){ .kind = (uint8_t)kind, .row = (uint8_t)row, .id = id, .name = name };
    *number = p->lanes++;
  }
  *out = (size_t)*number;
  return TB_OK;
}

/* Translates the scene's number of a name into the picture's. */
static tb_rc name_of(struct to_picture *p, uint32_t name, uint32_t *out) {
  struct to_picture_work *w = p->work;

  if (w->name[name] == NAME_UNKNOWN)
    TB_TRY(to_texts_add(&p->names, to_texts_text(&w->scene->names, name), &w->name[name]));
  *out = w->name[name];
  return TB_OK;
}

static tb_rc find_entry(struct to_picture *p, const struct to_scene_goroutine *g, uint32_t *out) {
  uint64_t *known;
  bool is_fresh;

  TB_TRY(name_of(p, g->entry, out));
  if (*out == 0) {
    known = tb_map_find(&p->work->entry, (uint64_t)g->id);
    if (known != NULL) *out = (uint32_t)*known;
    return TB_OK;
  }
  TB_TRY(tb_map_put(&p->work->entry, (uint64_t)g->id, &known, &is_fresh));
  if (is_fresh || g->entry_is_sure) *known = *out;
  *out = (uint32_t)*known;
  return TB_OK;
}

/* Finds a goroutine's entry function in this generation, or else in an earlier one. */
static tb_rc entry_of(struct to_picture *p, const struct to_scene_goroutine *g, uint32_t *out) {
  uint32_t *name = &p->work->entry_name[g - p->work->scene->goroutine];

  if (*name == NAME_UNKNOWN) TB_TRY(find_entry(p, g, name));
  *out = *name;
  return TB_OK;
}

static tb_rc stroke_of(struct to_picture *p, const struct to_scene_span *span,
                       struct to_stroke *out) {
  const struct to_scene_goroutine *g = &p->work->scene->goroutine[span->goroutine];

  *out = (struct to_stroke){ .from = span->from,
                             .until = span->until,
                             .subject = (uint64_t)g->id,
                             .look = span->look,
                             .from_known = span->from_known,
                             .open = span->open };
  return entry_of(p, g, &out->name);
}

/* ---- spans that the picture shows ---- */

/* Spans in the order of time: all spans of a goroutine, or those listed in number. */
struct run {
  const struct to_scene_span *span;
  const uint32_t *number; /* NULL: all n, in place */
  size_t n;
};

static const struct to_scene_span *span_at(const struct run *run, size_t i) {
  return &run->span[run->number != NULL ? run->number[i] : i];
}

/* Returns the index of the first span that ends within the picture. */
static size_t first_of(const struct to_picture *p, const struct run *run) {
  size_t low = 0, high = run->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (span_at(run, middle)->until <= p->ask.from)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static tb_rc draw_run(struct to_picture *p, const struct run *run, size_t lane) {
  for (size_t i = first_of(p, run); i < run->n && span_at(run, i)->from < p->ask.until; i++) {
    struct to_stroke stroke;

    TB_TRY(stroke_of(p, span_at(run, i), &stroke));
    TB_TRY(to__draw(p, &p->lane[lane], &stroke));
  }
  return TB_OK;
}

static struct run run_of(const struct to_scene *s, const struct to_scene_goroutine *g) {
  return (struct run){ .span = &s->span[g->first], .n = g->n };
}

/* ---- Ps and threads ---- */

/* ids: NULL if a lane's id is its index. */
static tb_rc draw_order(struct to_picture *p, enum to_lane_kind kind,
                        const struct to_scene_order *order, const int64_t *ids) {
  for (size_t k = 0; k < order->of; k++) {
    const struct run run = { .span = p->work->scene->span,
                             .number = order->span + order->first[k],
                             .n = order->first[k + 1] - order->first[k] };
    size_t lane;

    if (run.n == 0) continue;
    TB_TRY(to__lane(p, kind, ids != NULL ? ids[k] : (int64_t)k, 0, 0, &lane));
    TB_TRY(draw_run(p, &run, lane));
  }
  return TB_OK;
}

/* ---- goroutines ---- */

/* A goroutine keeps its lane, even if a later generation has another entry function. */
static bool is_lane(const struct to_picture *p, const struct to_scene_goroutine *g) {
  return tb_map_find(&p->work->lane[TO_LANE_GOROUTINE], key_of(g->id, 0)) != NULL;
}

static bool is_asked(const struct to_picture *p, const struct to_scene_goroutine *g) {
  const struct to_picture_ask *ask = &p->ask;
  const uint64_t *known = tb_map_find(&p->work->entry, (uint64_t)g->id);
  struct to_string entry = known != NULL ? to_texts_text(&p->names, (uint32_t)*known)
                                         : to_texts_text(&p->work->scene->names, g->entry);

  if (g->id <= ask->after) return false;
  if (ask->has_entry && !is_lane(p, g) &&
      (entry.len != ask->entry.len || memcmp(entry.data, ask->entry.data, entry.len) != 0))
    return false;
  for (size_t i = 0; i < ask->n_ids; i++)
    if (ask->ids[i] == g->id) return true;
  return ask->n_ids == 0;
}

/* Takes the lane of the greatest id. Returns TB_END if that id is smaller than this one. */
static tb_rc reuse_lane(struct to_picture *p, int64_t id, uint32_t name, size_t *out) {
  size_t greatest = SIZE_MAX;

  p->more_goroutines = true;
  for (size_t i = 0; i < p->lanes; i++)
    if (p->lane[i].kind == TO_LANE_GOROUTINE &&
        (greatest == SIZE_MAX || p->lane[i].id > p->lane[greatest].id))
      greatest = i;
  if (greatest == SIZE_MAX || p->lane[greatest].id < id) return TB_END;
  struct to_lane *lane = &p->lane[greatest];
  uint64_t *number;
  (void)tb_map_remove(&p->work->lane[TO_LANE_GOROUTINE], key_of(lane->id, 0));
  TB_TRY(tb_map_put(&p->work->lane[TO_LANE_GOROUTINE], key_of(id, 0), &number, NULL));
  *number = greatest;
  to__cell_builder_free(p, lane);
  lane->cells = 0;
  lane->id = id;
  lane->name = name;
  *out = greatest;
  return TB_OK;
}

/* Returns TB_END if no lane is left. */
static tb_rc goroutine_lane(struct to_picture *p, const struct to_scene_goroutine *g, size_t *out) {
  const uint64_t *number = tb_map_find(&p->work->lane[TO_LANE_GOROUTINE], key_of(g->id, 0));
  uint32_t name;

  TB_TRY(entry_of(p, g, &name));
  if (number != NULL) {
    *out = (size_t)*number;
    if (p->lane[*out].name == 0) p->lane[*out].name = name;
    return TB_OK;
  }
  if (p->goroutines == p->ask.limit) return reuse_lane(p, g->id, name, out);
  p->goroutines++;
  return to__lane(p, TO_LANE_GOROUTINE, g->id, 0, name, out);
}

static bool overlaps(const struct to_picture *p, const struct to_scene_span *first, size_t n) {
  return n > 0 && first->from < p->ask.until && first[n - 1].until > p->ask.from;
}

static tb_rc draw_goroutine(struct to_picture *p, const struct to_scene_goroutine *g) {
  const struct run run = run_of(p->work->scene, g);
  size_t lane;

  if (!overlaps(p, run.span, run.n) || !is_asked(p, g)) return TB_OK;
  tb_rc rc = goroutine_lane(p, g, &lane);
  if (rc != TB_OK) return rc == TB_END ? TB_OK : rc;
  return draw_run(p, &run, lane);
}

static tb_rc draw_goroutines(struct to_picture *p) {
  const struct to_scene *s = p->work->scene;

  for (size_t i = 0; i < s->goroutines; i++) TB_TRY(draw_goroutine(p, &s->goroutine[i]));
  return TB_OK;
}

/* ---- groups and counts ---- */

static tb_rc make_groups_room(struct to_picture *p, size_t lane) {
  struct to_picture_work *w = p->work;
  size_t before = w->groups_room;

  TB_TRY(TB_MEM_GROW(p->mem, w->group, w->groups_room, lane));
  for (size_t i = before; i < w->groups_room; i++) w->group[i] = NULL;
  return TB_OK;
}

static tb_rc group_of(struct to_picture *p, uint32_t name, struct to_counts **out) {
  struct to_picture_work *w = p->work;
  const uint64_t *known = tb_map_find(&w->lane[TO_LANE_GROUP], key_of(name, 0));
  size_t lane;

  if (known == NULL && w->groups >= TO_PICTURE_GROUPS) name = 0;
  TB_TRY(to__lane(p, TO_LANE_GROUP, name, 0, name, &lane));
  TB_TRY(make_groups_room(p, lane));
  if (w->group[lane] == NULL) {
    TB_TRY(to__counts_new(p, &w->group[lane]));
    w->groups++;
  }
  *out = w->group[lane];
  return TB_OK;
}

static tb_rc count_goroutine(struct to_picture *p, const struct to_scene_goroutine *g) {
  const struct run run = run_of(p->work->scene, g);
  struct to_counts *group = NULL;
  uint32_t name;

  if (!overlaps(p, run.span, run.n)) return TB_OK;
  TB_TRY(entry_of(p, g, &name));
  if (wants(p, TO_LANE_GROUP)) TB_TRY(group_of(p, name, &group));
  for (size_t i = first_of(p, &run); i < run.n && run.span[i].from < p->ask.until; i++) {
    if (group != NULL) to__counts_add(p, group, &run.span[i]);
    if (p->work->all != NULL) to__counts_add(p, p->work->all, &run.span[i]);
  }
  return TB_OK;
}

static tb_rc count_goroutines(struct to_picture *p) {
  const struct to_scene *s = p->work->scene;

  for (size_t i = 0; i < s->goroutines; i++) TB_TRY(count_goroutine(p, &s->goroutine[i]));
  return TB_OK;
}

/* ---- marks ---- */

static enum to_lane_kind lane_of(uint8_t look) {
  switch (look) {
  case TO_LOOK_STW:
  case TO_LOOK_GC_MARK: return TO_LANE_RANGE;
  case TO_LOOK_TASK: return TO_LANE_TASK;
  case TO_LOOK_LOG: return TO_LANE_LOG;
  case TO_LOOK_SAMPLE: return TO_LANE_SAMPLE;
  case TO_LOOK_METRIC: return TO_LANE_METRIC;
  default: return TO_LANE_REGION;
  }
}

/* Draws only regions of goroutines that may have a lane. */
static tb_rc add_region(struct to_picture *p, const struct to_scene_mark *mark,
                        const struct to_stroke *stroke) {
  if (mark->goroutine == TO_SCENE_NONE) return TB_OK;
  const struct to_scene_goroutine *g = &p->work->scene->goroutine[mark->goroutine];
  if (!is_asked(p, g)) return TB_OK;
  return to__rows_add(p, p->work->rows, TO_LANE_REGION, g->id, stroke);
}

static tb_rc draw_mark(struct to_picture *p, const struct to_scene_mark *mark,
                       enum to_lane_kind kind) {
  const struct to_scene *s = p->work->scene;
  struct to_stroke stroke = { .from = mark->from,
                              .until = mark->until,
                              .look = mark->look,
                              .from_known = mark->from_known,
                              .open = mark->open };
  size_t lane;

  TB_TRY(name_of(p, mark->name, &stroke.name));
  if (mark->goroutine != TO_SCENE_NONE) stroke.subject = (uint64_t)s->goroutine[mark->goroutine].id;
  if (kind == TO_LANE_REGION) return add_region(p, mark, &stroke);
  if (kind == TO_LANE_TASK) {
    stroke.subject = mark->value;
    return to__rows_add(p, p->work->rows, TO_LANE_TASK, 0, &stroke);
  }
  int64_t id = kind == TO_LANE_METRIC ? mark->state : kind == TO_LANE_RANGE ? mark->look : 0;
  TB_TRY(to__lane(p, kind, id, 0, 0, &lane));
  if (kind == TO_LANE_RANGE) return to__draw(p, &p->lane[lane], &stroke);
  if (kind == TO_LANE_METRIC)
    return to__draw_value(p, &p->lane[lane], mark->from, (double)mark->value);
  return to__draw_moment(p, &p->lane[lane], &stroke);
}

static tb_rc draw_marks(struct to_picture *p) {
  const struct to_scene *s = p->work->scene;

  for (size_t i = 0; i < s->marks; i++) {
    enum to_lane_kind kind = lane_of(s->mark[i].look);

    if (wants(p, kind)) TB_TRY(draw_mark(p, &s->mark[i], kind));
  }
  return TB_OK;
}

/* ---- a generation ---- */

static tb_rc draw_scene(struct to_picture *p) {
  const struct to_scene *s = p->work->scene;

  if (wants(p, TO_LANE_PROC)) TB_TRY(draw_order(p, TO_LANE_PROC, &s->on_proc, NULL));
  if (wants(p, TO_LANE_THREAD)) TB_TRY(draw_order(p, TO_LANE_THREAD, &s->on_thread, s->thread));
  if (wants(p, TO_LANE_GOROUTINE)) TB_TRY(draw_goroutines(p));
  if (wants(p, TO_LANE_GROUP) || wants(p, TO_LANE_COUNT)) TB_TRY(count_goroutines(p));
  return draw_marks(p);
}

tb_rc to_picture_add(struct to_picture *p, const struct to_scene *scene) {
  size_t bytes = (scene->names.n + 1 + scene->goroutines) * sizeof(uint32_t);
  struct to_picture_work *w = p->work;

  TB_TRY(tb_mem_alloc(p->mem, bytes, &w->name));
  memset(w->name, 0xff, bytes);
  w->name[0] = 0;
  w->entry_name = w->name + scene->names.n + 1;
  w->scene = scene;
  w->until = scene->until;
  tb_rc rc = draw_scene(p);
  tb_mem_free(p->mem, w->name, bytes);
  w->name = w->entry_name = NULL;
  w->scene = NULL;
  return rc;
}

/* Names cells that were drawn before a later generation named the goroutine. */
static void name_cells(const struct to_picture *p, struct to_lane *lane) {
  if (lane->kind != TO_LANE_PROC && lane->kind != TO_LANE_THREAD && lane->kind != TO_LANE_GOROUTINE)
    return;
  for (size_t i = 0; i < lane->cells; i++) {
    struct to_cell *c = &lane->cell[i];
    const uint64_t *known =
        c->name == 0 && c->subject != 0 ? tb_map_find(&p->work->entry, c->subject) : NULL;

    if (known != NULL) c->name = (uint32_t)*known;
  }
}

static int compare(const void *a, const void *b) {
  const struct to_lane *one = a, *other = b;

  if (one->kind != other->kind) return one->kind - other->kind;
  if (one->id != other->id) return (one->id > other->id) - (one->id < other->id);
  return one->row - other->row;
}

static tb_rc draw_counts(struct to_picture *p) {
  struct to_picture_work *w = p->work;

  for (size_t i = 0; i < w->groups_room; i++)
    if (w->group[i] != NULL) TB_TRY(to__counts_draw_group(p, w->group[i], &p->lane[i]));
  for (unsigned which = 0; w->all != NULL && which < COUNTS; which++) {
    size_t lane;

    TB_TRY(to__lane(p, TO_LANE_COUNT, which, 0, 0, &lane));
    TB_TRY(to__counts_draw(p, w->all, which, &p->lane[lane]));
  }
  return TB_OK;
}

/* Drops regions of goroutines whose lane was reused. */
static void drop_lone_regions(struct to_picture *p) {
  size_t kept = 0;

  for (size_t i = 0; i < p->lanes; i++) {
    struct to_lane *lane = &p->lane[i];

    if (lane->kind == TO_LANE_REGION &&
        tb_map_find(&p->work->lane[TO_LANE_GOROUTINE], key_of(lane->id, 0)) == NULL)
      tb_mem_free(p->mem, lane->cell, lane->room * sizeof *lane->cell);
    else
      p->lane[kept++] = *lane;
  }
  p->lanes = kept;
}

tb_rc to_picture_end(struct to_picture *p) {
  TB_TRY(draw_counts(p));
  TB_TRY(to__rows_draw(p, p->work->rows));
  for (size_t i = 0; i < p->lanes; i++) TB_TRY(to__draw_end(p, &p->lane[i], p->work->until));
  drop_lone_regions(p);
  for (size_t i = 0; i < p->lanes; i++) name_cells(p, &p->lane[i]);
  if (p->lanes > 0) qsort(p->lane, p->lanes, sizeof *p->lane, compare);
  return TB_OK;
}

static tb_rc begin(struct to_picture *p) {
  struct to_picture_work *w;

  TB_TRY(tb_mem_alloc(p->mem, sizeof *w, &w));
  p->work = w;
  for (unsigned kind = 0; kind < TO_LANE_KINDS; kind++)
    tb_map_init(&w->lane[kind], p->mem, tb_seed());
  tb_map_init(&w->entry, p->mem, tb_seed());
  TB_TRY(to__rows_new(p, &w->rows));
  if (wants(p, TO_LANE_COUNT)) TB_TRY(to__counts_new(p, &w->all));
  return TB_OK;
}

tb_rc to_picture_new(struct tb_mem *mem, const struct to_picture_ask *ask,
                     struct to_picture **out) {
  to_ns length = ask->until - ask->from;
  struct to_picture *p;

  TB_TRY(tb_mem_alloc(mem, sizeof *p, &p));
  p->mem = mem;
  p->ask = *ask;
  p->px_ns = (length + ask->px - 1) / ask->px;
  for (p->unit = 1; length / p->unit > UINT32_MAX;) p->unit *= 2;
  to_texts_init(&p->names, mem);
  tb_rc rc = begin(p);
  if (rc == TB_OK)
    *out = p;
  else
    to_picture_free(p);
  return rc;
}

static void free_work(struct to_picture *p) {
  struct to_picture_work *w = p->work;

  for (unsigned kind = 0; kind < TO_LANE_KINDS; kind++) tb_map_fini(&w->lane[kind]);
  tb_map_fini(&w->entry);
  to__rows_free(p, w->rows);
  to__counts_free(p, w->all);
  for (size_t i = 0; i < w->groups_room; i++) to__counts_free(p, w->group[i]);
  tb_mem_free(p->mem, w->group, w->groups_room * sizeof(struct to_counts *));
  tb_mem_free(p->mem, w, sizeof *w);
}

void to_picture_free(struct to_picture *p) {
  if (p == NULL) return;
  struct tb_mem *mem = p->mem;

  if (p->work != NULL) free_work(p);
  for (size_t i = 0; i < p->lanes; i++) {
    to__cell_builder_free(p, &p->lane[i]);
    tb_mem_free(mem, p->lane[i].cell, p->lane[i].room * sizeof *p->lane[i].cell);
  }
  tb_mem_free(mem, p->lane, p->lanes_room * sizeof *p->lane);
  to_texts_fini(&p->names);
  tb_mem_free(mem, p, sizeof *p);
}
