/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "collector/timeline/private.h"

static void drop(struct tc_timeline *t, struct tc__scene *s) {
  TAILQ_REMOVE(&t->scenes, s, by_use);
  to_scene_free(s->scene);
  tb_mem_give(&t->mem, s, sizeof *s);
}

bool tc__scenes_drop_oldest(struct tc_timeline *t) {
  struct tc__scene *oldest = TAILQ_FIRST(&t->scenes);

  if (oldest == NULL) return false;
  drop(t, oldest);
  return true;
}

/* ---- bytes ---- */

void tc__bytes_free(struct tc_timeline *t, struct tc__bytes *bytes) {
  tb_mem_give(&t->mem, bytes->bytes, bytes->len);
  bytes->bytes = NULL;
}

static tb_rc take_room(struct tc_timeline *t, size_t len, struct tb_diag *diag, void *out) {
  tb_rc rc = tb_mem_take(&t->mem, len, out);

  while (rc == TB_BUDGET && tc__scenes_drop_oldest(t)) rc = tb_mem_take(&t->mem, len, out);
  if (rc == TB_BUDGET)
    return tb_fail(diag, rc, "a generation of %zu bytes is more than http.timeline_bytes allows",
                   len);
  return rc;
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
  TB_TRY(tc_query_session_open(session, place->segment, diag, &row, &fd));
  tb_rc rc = take_room(t, out->len, diag, &out->bytes);
  if (rc == TB_OK) rc = read_bytes(fd, row.path, place, diag, out);
  close(fd);
  if (rc != TB_OK) tc__bytes_free(t, out);
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

static struct tc__scene *find(struct tc_timeline *t, const unsigned char *stream, uint64_t gen) {
  struct tc__scene *s;

  TAILQ_FOREACH(s, &t->scenes, by_use)
  if (s->gen == gen && memcmp(s->stream, stream, sizeof s->stream) == 0) return s;
  return NULL;
}

static tb_rc build(struct tc_timeline *t, const struct tc_timeline_ask *ask,
                   const struct tc__place *place, const struct tc__bytes *bytes,
                   struct tb_diag *diag, struct to_scene **out) {
  const struct to_scene_source source = tc__bytes_source(place, bytes, ask->go_on, ask->self);
  tb_rc rc;

  do {
    tb_diag_clear(diag);
    rc = to_scene_new(&t->mem, &source, diag, out);
  } while (rc == TB_BUDGET && tc__scenes_drop_oldest(t));
  return rc;
}

static tb_rc make(struct tc_timeline *t, struct tc_query_session *session,
                  const struct tc_timeline_ask *ask, const struct tc__place *place,
                  struct tb_diag *diag, struct to_scene **out) {
  struct tc__bytes bytes;

  TB_TRY(tc__bytes_read(t, session, place, diag, &bytes));
  tb_rc rc = build(t, ask, place, &bytes, diag, out);
  tc__bytes_free(t, &bytes);
  return rc;
}

tb_rc tc__scenes_get(struct tc_timeline *t, struct tc_query_session *session,
                     const struct tc_timeline_ask *ask, const struct tc__place *place,
                     struct tb_diag *diag, const struct to_scene **out) {
  struct tc__scene *s = find(t, ask->stream, place->gen);

  if (s != NULL && s->after != place->after) { /* less was known of the one before it */
    drop(t, s);
    s = NULL;
  }
  if (s != NULL) {
    TAILQ_REMOVE(&t->scenes, s, by_use);
  } else {
    struct to_scene *scene;

    TB_TRY(make(t, session, ask, place, diag, &scene));
    tb_rc rc = tb_mem_take(&t->mem, sizeof *s, &s);
    if (rc != TB_OK) {
      to_scene_free(scene);
      return rc;
    }
    memcpy(s->stream, ask->stream, sizeof s->stream);
    s->gen = place->gen;
    s->after = place->after;
    s->scene = scene;
  }
  TAILQ_INSERT_TAIL(&t->scenes, s, by_use);
  *out = s->scene;
  return TB_OK;
}
