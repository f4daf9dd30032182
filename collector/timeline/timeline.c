/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/timeline/timeline.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collector/timeline/private.h"

#define LENGTH_MAX (UINT64_C(1) << 62) /* nanoseconds: 146 years */

/* ---- the answer ---- */

void tc_timeline_answer_init(struct tc_timeline_answer *answer, struct tb_mem *mem) {
  *answer = (struct tc_timeline_answer){ .mem = mem };
}

void tc_timeline_answer_fini(struct tc_timeline_answer *answer) {
  to_picture_free(answer->picture);
  tb_mem_free(answer->mem, answer->generation, answer->room * sizeof *answer->generation);
}

static tb_rc add_generation(struct tc_timeline_answer *answer, const struct tc__place *place,
                            const char *state, const char *why) {
  TB_TRY(TB_MEM_GROW(answer->mem, answer->generation, answer->room, answer->generations));
  struct tc_timeline_generation *g = &answer->generation[answer->generations++];

  *g = (struct tc_timeline_generation){ .gen = place->gen,
                                        .segment = place->segment,
                                        .from_wall_ns = place->from_wall_ns,
                                        .until_wall_ns = place->until_wall_ns,
                                        .state = state };
  snprintf(g->why, sizeof g->why, "%s", why);
  return TB_OK;
}

/* ---- clocks ---- */

/* Returns the offset from trace clock to wall clock. The first generation's offset is used for the whole picture. */
static uint64_t offset_of(const struct to_scene *scene, const struct tc__place *place) {
  if (!scene->has_clock) return place->until_wall_ns - (uint64_t)scene->until;
  return (uint64_t)scene->clock.wall_s * UINT64_C(1000000000) + (uint64_t)scene->clock.wall_ns -
         (uint64_t)scene->clock.trace_ns;
}

static tb_rc begin_picture(const struct tc_timeline_ask *ask, const struct to_scene *scene,
                           const struct tc__place *place, struct tc_timeline_answer *out) {
  uint64_t offset = offset_of(scene, place);
  struct to_picture_ask picture = ask->picture;

  out->program = scene->program;
  if (ask->until_wall_ns == 0) {
    out->from_wall_ns = (uint64_t)scene->from + offset;
    out->until_wall_ns = (uint64_t)scene->until + offset;
  }
  if (out->until_wall_ns <= out->from_wall_ns) out->until_wall_ns = out->from_wall_ns + 1;
  picture.from = (to_ns)(out->from_wall_ns - offset);
  picture.until = (to_ns)(out->until_wall_ns - offset);
  return to_picture_new(out->mem, &picture, &out->picture);
}

/* ---- a picture ---- */

/* Returns the state of a faulty generation, as in `list`; NULL: another error, which ends the picture. */
static const char *state_of(tb_rc rc) {
  switch ((int)rc) {
  case TB_BROKEN: return "broken";
  case TB_UNSUPPORTED: return "unsupported";
  case TB_FUEL: return "fuel";
  case TB_BUDGET: return "too-large";
  case TB_CORRUPT: return "unreadable";
  case TB_NOTFOUND: return "expired"; /* after it was listed */
  default: return NULL;
  }
}

static tb_rc add_place(struct tc_timeline *t, struct tc_query_session *session,
                       const struct tc_timeline_ask *ask, const struct tc__place *place,
                       struct tb_diag *diag, struct tc_timeline_answer *out) {
  const struct to_scene *scene;
  struct tb_diag own;

  if (ask->go_on != NULL && !ask->go_on(ask->self)) return TB_END;
  if (place->expired) return add_generation(out, place, "expired", "");
  tb_diag_clear(&own);
  tb_rc rc = tc__scenes_get(t, session, ask, place, &own, &scene);
  if (rc != TB_OK) {
    const char *why = own.rc != TB_OK ? own.text : tb_rc_text(rc);

    if (state_of(rc) != NULL) return add_generation(out, place, state_of(rc), why);
    return tb_fail(diag, rc, "%s", why);
  }
  if (out->picture == NULL) TB_TRY(begin_picture(ask, scene, place, out));
  TB_TRY(to_picture_add(out->picture, scene));
  return add_generation(out, place, "ok", "");
}

static tb_rc fail_empty(const struct tc_timeline_answer *out, struct tb_diag *diag) {
  const struct tc_timeline_generation *first = &out->generation[0];

  if (strcmp(first->state, "expired") == 0)
    return tb_fail(diag, TB_NOTFOUND, "what was traced then has expired: retention took its bytes");
  return tb_fail(diag, TB_NOTFOUND, "generation %" PRIu64 ": %s", first->gen, first->why);
}

static tb_rc draw(struct tc_timeline *t, struct tc_query_session *session,
                  const struct tc_timeline_ask *ask, const struct tc__places *places,
                  struct tb_diag *diag, struct tc_timeline_answer *out) {
  TB_TRY(tc__places_check_size(places, diag));
  memcpy(out->service, places->service, sizeof out->service);
  memcpy(out->instance, places->instance, sizeof out->instance);
  memcpy(out->stream, ask->stream, sizeof out->stream);
  out->wall_estimated = places->wall_estimated;
  out->from_wall_ns = ask->from_wall_ns;
  out->until_wall_ns = ask->until_wall_ns;
  for (size_t i = 0; i < places->n; i++)
    TB_TRY(add_place(t, session, ask, &places->place[i], diag, out));
  if (out->picture == NULL) return fail_empty(out, diag);
  return to_picture_end(out->picture);
}

tb_rc tc_timeline_draw(struct tc_timeline *t, struct tc_query_session *session,
                       const struct tc_timeline_ask *ask, struct tb_diag *diag,
                       struct tc_timeline_answer *out) {
  struct tc__places places = { .mem = out->mem };

  if (ask->until_wall_ns - ask->from_wall_ns > LENGTH_MAX)
    return tb_fail(diag, TB_BUDGET, "no picture is longer than %" PRIu64 " years",
                   LENGTH_MAX / UINT64_C(1000000000) / 31556952);
  tb_rc rc =
      tc__places_find(session, ask->stream, ask->from_wall_ns, ask->until_wall_ns, diag, &places);
  if (rc == TB_OK) rc = draw(t, session, ask, &places, diag, out);
  tc__places_fini(&places);
  if (rc == TB_BUDGET && diag->rc == TB_OK)
    return tb_fail(diag, rc, "the picture is too large: ask for fewer lanes, or fewer pixels");
  return rc;
}

/* ---- the object ---- */

struct tc_timeline *tc_timeline_new(size_t memory_max) {
  struct tc_timeline *t = calloc(1, sizeof *t);

  if (t == NULL) return NULL;
  tb_mem_init(&t->mem, tb_mem_libc, NULL, memory_max);
  TAILQ_INIT(&t->scenes);
  return t;
}

/* malloc_trim(): the C library would keep the freed blocks. */
void tc_timeline_rest(struct tc_timeline *t) {
  tc__scenes_drop_all(t);
  malloc_trim(0);
}

void tc_timeline_free(struct tc_timeline *t) {
  if (t == NULL) return;
  tc_timeline_rest(t);
  free(t);
}
