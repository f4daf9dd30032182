/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of the traces in tests/data: they show what is in the traces' generations, cell by
 * cell and in sum. Other tests show that the spans are right (test_spans.c,
 * tests/conformance/spans.sh). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "online/scene/picture.h"
#include "support/patience.h"
#include "support/seeds.h"
#include "support/stored.h"

enum {
  HEADER = 16,
  GENERATIONS_MAX = 64,
  BYTES_MAX = TT_LESS(4 << 20, 60000),
  ALL = (1 << TO_LANE_KINDS) - 1
};

static struct tb_mem mem;
static struct to_scene *scene[GENERATIONS_MAX];
static size_t scenes;

static void load(const struct tt_stored *trace) {
  struct tt_place place[GENERATIONS_MAX];
  struct tb_diag diag;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  scenes = tt_generations(trace->bytes, trace->len, place, GENERATIONS_MAX);
  cr_assert_gt(scenes, 0, "%s", trace->path);
  for (size_t i = 0; i < scenes; i++) {
    const struct to_scene_source source = { .after = i > 0 ? scene[i - 1]->until : 0,
                                            .header = trace->bytes,
                                            .header_len = HEADER,
                                            .bytes = trace->bytes + place[i].offset,
                                            .len = place[i].bytes };

    cr_assert_eq(to_scene_new(&mem, &source, &diag, &scene[i]), TB_OK, "%s: %s", trace->path,
                 diag.text);
    cr_assert_eq(scene[i]->gen, i + 1);
  }
}

static void unload(void) {
  for (size_t i = 0; i < scenes; i++) to_scene_free(scene[i]);
  cr_assert_eq(mem.bytes, 0, "%zu bytes left", mem.bytes);
}

static struct to_picture *draw(const struct to_picture_ask *ask) {
  struct to_picture *p;

  cr_assert_eq(to_picture_new(&mem, ask, &p), TB_OK);
  for (size_t i = 0; i < scenes; i++) cr_assert_eq(to_picture_add(p, scene[i]), TB_OK);
  cr_assert_eq(to_picture_end(p), TB_OK);
  return p;
}

static struct to_picture_ask all_of_it(unsigned px, uint32_t kinds) {
  return (struct to_picture_ask){ .from = scene[0]->from,
                                  .until = scene[scenes - 1]->until,
                                  .px = px,
                                  .kinds = kinds,
                                  .after = INT64_MIN,
                                  .limit = TO_PICTURE_GOROUTINES_MAX };
}

static void each_trace(void (*look)(const struct tt_stored *trace)) {
  cr_assert_gt(tt_each_stored("tests/data", BYTES_MAX, look), TT_LESS(8, 3));
}

/* ---- scenes ---- */

static void expect_scene(const struct to_scene *s) {
  for (size_t i = 0; i < s->goroutines; i++) {
    const struct to_scene_goroutine *g = &s->goroutine[i];

    if (i > 0) cr_assert_gt(g->id, g[-1].id);
    for (uint32_t k = 0; k < g->n; k++) {
      const struct to_scene_span *span = &s->span[g->first + k];

      cr_assert_eq(span->goroutine, i);
      cr_assert_leq(span->from, span->until);
      cr_assert_geq(span->from, k == 0 ? s->from : span[-1].until);
      cr_assert_leq(span->until, s->until);
      cr_assert_eq(span->open && k + 1 < g->n, false, "only the last one goes on");
    }
  }
}

static size_t expect_order(const struct to_scene *s, const struct to_scene_order *order) {
  for (size_t k = 0; k < order->of; k++)
    for (uint32_t i = order->first[k] + 1; i < order->first[k + 1]; i++)
      cr_assert_geq(s->span[order->span[i]].from, s->span[order->span[i - 1]].until);
  return order->n;
}

static void expect_scenes(const struct tt_stored *trace) {
  load(trace);
  for (size_t i = 0; i < scenes; i++) {
    size_t on_proc = 0, on_thread = 0;

    expect_scene(scene[i]);
    for (size_t k = 0; k < scene[i]->spans; k++) {
      on_proc += scene[i]->span[k].proc >= 0;
      on_thread += scene[i]->span[k].thread != TO_SCENE_NONE;
    }
    cr_assert_eq(expect_order(scene[i], &scene[i]->on_proc), on_proc);
    cr_assert_eq(expect_order(scene[i], &scene[i]->on_thread), on_thread);
  }
  unload();
}

Test(scene, goroutines_ps_and_threads_are_in_the_order_of_time) {
  each_trace(expect_scenes);
}

/* ---- cells ---- */

static const struct to_lane *lane_of(const struct to_picture *p, enum to_lane_kind kind,
                                     int64_t id) {
  for (size_t i = 0; i < p->lanes; i++)
    if (p->lane[i].kind == kind && p->lane[i].id == id) return &p->lane[i];
  return NULL;
}

static to_ns at_least(to_ns a, to_ns b) {
  return a > b ? a : b;
}

static to_ns at_most(to_ns a, to_ns b) {
  return a < b ? a : b;
}

/* A window of so few nanoseconds that each one is a pixel: the cells are the spans, cut off at
 * the edges. */
static void expect_exact(to_ns from, size_t in) {
  struct to_picture_ask ask = all_of_it(4096, 1 << TO_LANE_GOROUTINE);
  const struct to_scene *s = scene[in];

  ask.from = from;
  ask.until = at_most(from + 4096, s->until);
  if (ask.until <= ask.from) return;
  struct to_picture *p;
  cr_assert_eq(to_picture_new(&mem, &ask, &p), TB_OK);
  cr_assert_eq(to_picture_add(p, s), TB_OK);
  cr_assert_eq(to_picture_end(p), TB_OK);
  for (size_t i = 0; i < s->goroutines; i++) {
    const struct to_lane *lane = lane_of(p, TO_LANE_GOROUTINE, s->goroutine[i].id);
    size_t cell = 0;

    for (uint32_t k = 0; k < s->goroutine[i].n; k++) {
      const struct to_scene_span *span = &s->span[s->goroutine[i].first + k];

      if (at_most(span->until, ask.until) <= at_least(span->from, ask.from)) continue;
      cr_assert(lane != NULL && cell < lane->cells);
      const struct to_cell *c = &lane->cell[cell++];
      cr_assert_eq(c->from, at_least(span->from, ask.from) - ask.from);
      cr_assert_eq(c->until, at_most(span->until, ask.until) - ask.from);
      cr_assert_eq(c->look, span->look);
      cr_assert_eq(c->subject, (uint64_t)s->goroutine[i].id);
      cr_assert_eq(c->share, 65535);
      cr_assert_eq(!!(c->flags & TO_CELL_BEGAN_BEFORE), !span->from_known || span->from < ask.from);
      cr_assert_eq(!!(c->flags & TO_CELL_GOES_ON), span->open || span->until > ask.until);
    }
    cr_assert_eq(lane == NULL ? 0 : lane->cells, cell);
  }
  to_picture_free(p);
}

static void expect_exact_cells(const struct tt_stored *trace) {
  load(trace);
  for (size_t i = 0; i < scenes; i++)
    for (size_t k = 0; k < 20 && scene[i]->spans > 0; k++)
      expect_exact(scene[i]->span[(k * 7919) % scene[i]->spans].from - 10, i);
  unload();
}

Test(picture, shows_each_span_where_there_is_a_pixel_for_it) {
  each_trace(expect_exact_cells);
}

/* For any width: cells rise, do not overlap, are at most two a pixel, and halves of one stretch
 * are joined. */
static void expect_cells(const struct to_picture *p) {
  for (size_t i = 0; i < p->lanes; i++) {
    const struct to_lane *lane = &p->lane[i];

    cr_assert_leq(lane->cells, 2 * (size_t)p->ask.px + 1, "%s %ld", to_lane_kind_name(lane->kind),
                  (long)lane->id);
    for (size_t k = 0; k < lane->cells; k++) {
      const struct to_cell *c = &lane->cell[k];

      cr_assert_leq(c->from, c->until);
      cr_assert_leq(c->until, (p->ask.until - p->ask.from) / p->unit);
      if (k == 0) continue;
      cr_assert_leq(c[-1].until, c->from);
      if (lane->kind == TO_LANE_GOROUTINE && c[-1].until == c->from && c[-1].look == c->look)
        cr_assert_not((c[-1].flags & TO_CELL_GOES_ON) && (c->flags & TO_CELL_BEGAN_BEFORE));
    }
  }
}

static void expect_merged(const struct tt_stored *trace) {
  load(trace);
  for (unsigned px = 1; px <= TO_PICTURE_PX_MAX; px *= 8) {
    const struct to_picture_ask ask = all_of_it(px, ALL);
    struct to_picture *p = draw(&ask);

    expect_cells(p);
    cr_assert_gt(p->lanes, 0);
    to_picture_free(p);
  }
  unload();
}

Test(picture, of_any_width_has_no_more_cells_than_pixels_allow) {
  each_trace(expect_merged);
}

/* ---- sums ---- */

static unsigned count_of(uint8_t look) {
  return look == TO_LOOK_RUNNING    ? 0
         : look == TO_LOOK_RUNNABLE ? 1
         : look < TO_LOOK_WAITING   ? 2
                                    : 3;
}

static void expect_sums(const struct tt_stored *trace) {
  double ns[4] = { 0 };

  load(trace);
  const struct to_picture_ask ask = all_of_it(777, 1 << TO_LANE_COUNT);
  struct to_picture *p = draw(&ask);
  for (size_t i = 0; i < scenes; i++)
    for (size_t k = 0; k < scene[i]->spans; k++)
      ns[count_of(scene[i]->span[k].look)] +=
          (double)(scene[i]->span[k].until - scene[i]->span[k].from);
  cr_assert_eq(p->lanes, 4);
  for (unsigned which = 0; which < 4; which++) {
    const struct to_lane *lane = lane_of(p, TO_LANE_COUNT, which);
    double sum = 0;

    for (size_t k = 0; k < lane->cells; k++)
      sum += lane->cell[k].value * (double)(lane->cell[k].until - lane->cell[k].from) *
             (double)p->unit;
    cr_assert_float_eq(sum, ns[which], ns[which] * 1e-3 + 1000, "%s: %u: %f of %f", trace->path,
                       which, sum, ns[which]);
  }
  to_picture_free(p);
  unload();
}

Test(picture, counts_add_up_to_the_time_in_each_state) {
  each_trace(expect_sums);
}

/* ---- which goroutines ---- */

static void expect_pages(const struct tt_stored *trace) {
  load(trace);
  struct to_picture_ask ask = all_of_it(100, 1 << TO_LANE_GOROUTINE);
  struct to_picture *all = draw(&ask);
  size_t at = 0;

  cr_assert_not(all->more_goroutines);
  ask.limit = 3;
  for (;;) {
    struct to_picture *p = draw(&ask);

    for (size_t i = 0; i < p->lanes; i++, at++) {
      cr_assert_eq(p->lane[i].id, all->lane[at].id);
      cr_assert_eq(p->lane[i].cells, all->lane[at].cells);
      cr_assert_eq(memcmp(p->lane[i].cell, all->lane[at].cell,
                          p->lane[i].cells * sizeof(struct to_cell)) != 0 &&
                       p->lane[i].cell[0].name == 0,
                   false);
      ask.after = p->lane[i].id;
    }
    bool more = p->more_goroutines;
    to_picture_free(p);
    if (!more) break;
  }
  cr_assert_eq(at, all->lanes);
  to_picture_free(all);
  unload();
}

Test(picture, pages_of_goroutines_are_all_of_them) {
  each_trace(expect_pages);
}

/* ---- memory ---- */

static tb_rc draw_within(size_t bytes_max, const struct to_picture_ask *ask) {
  struct tb_mem small;
  struct to_picture *p = NULL;

  tb_mem_init(&small, tb_mem_libc, NULL, bytes_max);
  tb_rc rc = to_picture_new(&small, ask, &p);
  for (size_t i = 0; i < scenes && rc == TB_OK; i++) rc = to_picture_add(p, scene[i]);
  if (rc == TB_OK) rc = to_picture_end(p);
  to_picture_free(p);
  cr_assert_eq(small.bytes, 0);
  return rc;
}

static void expect_bounded(const struct tt_stored *trace) {
  size_t bytes = 256;

  load(trace);
  const struct to_picture_ask ask = all_of_it(200, ALL);
  while (draw_within(bytes, &ask) == TB_BUDGET) bytes += bytes / 4;
  cr_assert_eq(draw_within(bytes, &ask), TB_OK);
  unload();
}

Test(picture, without_memory_leaves_nothing) {
  each_trace(expect_bounded);
}

static bool never(void *self) {
  (void)self;
  return false;
}

static void expect_stopped(const struct tt_stored *trace) {
  const struct to_scene_source source = { .header = trace->bytes,
                                          .header_len = HEADER,
                                          .bytes = trace->bytes + HEADER,
                                          .len = trace->len - HEADER,
                                          .go_on = never };
  struct to_scene *out;
  struct tb_diag diag;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_scene_new(&mem, &source, &diag, &out), TB_END);
  cr_assert_eq(mem.bytes, 0);
}

Test(scene, can_be_called_off) {
  each_trace(expect_stopped);
}
