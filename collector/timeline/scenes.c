/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "collector/timeline/private.h"

static void drop(struct tc_timeline *t, struct tc__scene *s) {
  TAILQ_REMOVE(&t->scenes, s, by_use);
  to_scene_free(s->scene);
  tb_mem_free(&t->mem, s, sizeof *s);
}

void tc__scenes_drop_all(struct tc_timeline *t) {
  while (!TAILQ_EMPTY(&t->scenes)) drop(t, TAILQ_FIRST(&t->scenes));
}

/* At the limit the longest unused scenes are freed. Each scene has a struct tb_mem of its own, so that one can be freed while
 * another allocates. */
static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct tc_timeline *t = self;
  tb_rc rc;

  while ((rc = tb_mem_resize(&t->mem, &block, old_bytes, new_bytes)) == TB_BUDGET &&
         !TAILQ_EMPTY(&t->scenes))
    drop(t, TAILQ_FIRST(&t->scenes));
  if (rc != TB_OK) t->is_full = rc == TB_BUDGET; /* not reset when memory is freed */
  return rc == TB_OK ? block : NULL;
}

void tc__mem_init(struct tc_timeline *t, struct tb_mem *mem) {
  tb_mem_init(mem, resize, t, SIZE_MAX);
}

tb_rc tc__mem_rc(const struct tc_timeline *t, tb_rc rc, struct tb_diag *diag) {
  if (rc != TB_NOMEM || !t->is_full) return rc;
  tb_diag_clear(diag);
  return tb_fail(diag, TB_BUDGET, "it needs more than the %zu bytes of http.timeline_bytes",
                 t->mem.bytes_max);
}

/* ---- bytes ---- */

void tc__bytes_free(struct tc__bytes *bytes) {
  tb_mem_free(&bytes->mem, bytes->bytes, bytes->len);
  bytes->bytes = NULL;
}

static tb_rc read_bytes(int fd, const char *path, const struct tc__place *place,
                        struct tb_diag *diag, struct tc__bytes *out) {
  TB_TRY(tc_read_exactly(fd, path, out->header, sizeof out->header, 0, diag));
  return tc_read_exactly(fd, path, out->bytes, out->len, place->offset, diag);
}

tb_rc tc__bytes_read(struct tc_timeline *t, struct tc_query_session *session,
                     const struct tc__place *place, struct tb_diag *diag, struct tc__bytes *out) {
  struct tc_segment_row row;
  int fd;

  *out = (struct tc__bytes){ .len = (size_t)place->bytes };
  tc__mem_init(t, &out->mem);
  TB_TRY(tc_query_session_open(session, place->segment, diag, &row, &fd));
  tb_rc rc = tc__mem_rc(t, tb_mem_alloc(&out->mem, out->len, &out->bytes), diag);
  if (rc == TB_OK) rc = read_bytes(fd, row.path, place, diag, out);
  close(fd);
  if (rc != TB_OK) tc__bytes_free(out);
  return rc;
}

struct to_scene_source tc__bytes_source(const struct tc__place *place,
                                        const struct tc__bytes *bytes, bool (*go_on)(void *self),
                                        void *self) {
  return (struct to_scene_source){ .after = place->after,
                                   .header = bytes->header,
                                   .header_len = sizeof bytes->header,
                                   .bytes = bytes->bytes,
                                   .len = bytes->len,
                                   .go_on = go_on,
                                   .self = self };
}

/* ---- scenes ---- */

static struct tc__scene *find_scene(struct tc_timeline *t, const unsigned char *stream,
                                    uint64_t gen) {
  struct tc__scene *s;

  TAILQ_FOREACH(s, &t->scenes, by_use)
  if (s->gen == gen && memcmp(s->stream, stream, sizeof s->stream) == 0) return s;
  return NULL;
}

static tb_rc read_scene(struct tc_timeline *t, struct tc_query_session *session,
                        const struct tc_timeline_ask *ask, const struct tc__place *place,
                        struct tb_diag *diag, struct tc__scene *s) {
  struct tc__bytes bytes;

  TB_TRY(tc__bytes_read(t, session, place, diag, &bytes));
  const struct to_scene_source source = tc__bytes_source(place, &bytes, ask->go_on, ask->self);
  tb_rc rc = to_scene_new(&s->mem, &source, diag, &s->scene);
  tc__bytes_free(&bytes);
  return tc__mem_rc(t, rc, diag);
}

static tb_rc make_scene(struct tc_timeline *t, struct tc_query_session *session,
                        const struct tc_timeline_ask *ask, const struct tc__place *place,
                        struct tb_diag *diag, struct tc__scene **out) {
  struct tc__scene *s;

  TB_TRY(tb_mem_alloc(&t->mem, sizeof *s, &s));
  memcpy(s->stream, ask->stream, sizeof s->stream);
  s->gen = place->gen;
  s->after = place->after;
  tc__mem_init(t, &s->mem);
  tb_rc rc = read_scene(t, session, ask, place, diag, s);
  if (rc == TB_OK)
    *out = s;
  else
    tb_mem_free(&t->mem, s, sizeof *s);
  return rc;
}

tb_rc tc__scenes_get(struct tc_timeline *t, struct tc_query_session *session,
                     const struct tc_timeline_ask *ask, const struct tc__place *place,
                     struct tb_diag *diag, const struct to_scene **out) {
  struct tc__scene *s = find_scene(t, ask->stream, place->gen);

  if (s != NULL && s->after != place->after) { /* the generation before was unknown */
    drop(t, s);
    s = NULL;
  }
  if (s != NULL)
    TAILQ_REMOVE(&t->scenes, s, by_use);
  else
    TB_TRY(make_scene(t, session, ask, place, diag, &s));
  TAILQ_INSERT_TAIL(&t->scenes, s, by_use);
  *out = s->scene;
  return TB_OK;
}
