/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of any input that the reader accepts: cells rise, do not overlap and stay within the picture, names exist, a
 * moment has an answer if there is a cell, a state has every goroutine once, and all memory is released. */
#include "fuzz/fuzz.h"
#include "fuzz/trace_budget.h"
#include "online/scene/moment.h"
#include "online/scene/picture.h"
#include "online/scene/state.h"

enum { MEMORY_MAX = 64 << 20, HEADER = 16, ALL = (1 << TO_LANE_KINDS) - 1 };

static void look_at_cells(const struct to_picture *p, const struct to_lane *lane) {
  for (size_t i = 0; i < lane->cells; i++) {
    const struct to_cell *c = &lane->cell[i];

    FUZZ_CHECK(c->from <= c->until && c->look < TO_LOOKS && c->name < p->names.n + 1);
    FUZZ_CHECK((uint64_t)c->until * (uint64_t)p->unit <=
               (uint64_t)p->ask.until - (uint64_t)p->ask.from);
    if (i > 0) FUZZ_CHECK(c[-1].until <= c->from);
  }
}

static void draw(struct tb_mem *mem, const struct to_scene *scene, to_ns from, to_ns until,
                 unsigned px) {
  const struct to_picture_ask ask = {
    .from = from, .until = until, .px = px, .kinds = ALL, .after = INT64_MIN, .limit = px % 50 + 1
  };
  struct to_picture *p;

  if (until <= from || to_picture_new(mem, &ask, &p) != TB_OK) return;
  if (to_picture_add(p, scene) == TB_OK && to_picture_add(p, scene) == TB_OK &&
      to_picture_end(p) == TB_OK)
    for (size_t i = 0; i < p->lanes; i++) look_at_cells(p, &p->lane[i]);
  to_picture_free(p);
}

static tb_rc found(void *self, const struct to_moment *m) {
  const struct to_scene_span *asked = self;

  FUZZ_CHECK(m->stack == NULL || m->stack->len > 0);
  FUZZ_CHECK(m->span.until >= asked->from);
  return TB_OK;
}

static void ask(struct tb_mem *mem, const struct to_scene_source *source,
                const struct to_scene *scene) {
  struct tb_diag diag;

  for (size_t i = 0; i < scene->spans; i += scene->spans / 3 + 1) {
    struct to_scene_span span = scene->span[i];
    const struct to_moment_ask moment = { TO_MOMENT_OF_GOROUTINE,
                                          scene->goroutine[span.goroutine].id, span.from };

    tb_diag_clear(&diag);
    tb_rc rc = to_moment_find(mem, source, &moment, &diag, found, &span);
    FUZZ_CHECK(rc != TB_NOTFOUND || span.from == span.until);
  }
}

static tb_rc found_states(void *self, const struct to_scene_states *states) {
  size_t n = 0;

  (void)self;
  for (size_t i = 0; i < states->n; i++) {
    const struct to_scene_state *s = &states->state[i];
    FUZZ_CHECK(s->n > 0 && (i == 0 || s->n <= s[-1].n));
    FUZZ_CHECK(s->stack == NULL || s->stack->len > 0);
    for (size_t k = 1; k < s->n; k++)
      FUZZ_CHECK(s->goroutine[k - 1].since <= s->goroutine[k].since);
    n += s->n;
  }
  FUZZ_CHECK(n == states->goroutines);
  return TB_OK;
}

static void ask_all(struct tb_mem *mem, const struct to_scene_source *source,
                    const struct to_scene *scene) {
  const to_ns at[] = { scene->from, scene->from / 2 + scene->until / 2, scene->until, INT64_MAX };
  struct tb_diag diag;

  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    tb_diag_clear(&diag);
    (void)!to_scene_state_at(mem, source, at[i], &diag, found_states, NULL);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const struct to_scene_source source = { .after = size % 3 == 0 ? (int64_t)size << 20 : 0,
                                          .header = data,
                                          .header_len = size < HEADER ? size : HEADER,
                                          .bytes = data + (size < HEADER ? size : HEADER),
                                          .len = size < HEADER ? 0 : size - HEADER };
  struct to_scene *scene;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tt_tighten(&mem, size);
  if (to_scene_new(&mem, &source, &diag, &scene) == TB_OK) {
    draw(&mem, scene, scene->from, scene->until, 1);
    draw(&mem, scene, scene->from, scene->until, 300);
    draw(&mem, scene, scene->from / 2 + scene->until / 2, scene->until, TO_PICTURE_PX_MAX);
    draw(&mem, scene, INT64_MIN / 2, INT64_MAX / 2, 64);
    ask(&mem, &source, scene);
    ask_all(&mem, &source, scene);
    to_scene_free(scene);
  }
  FUZZ_CHECK(mem.bytes == 0);
  return 0;
}
