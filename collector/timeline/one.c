/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "collector/timeline/private.h"

static tb_rc read_and_look(struct tc_timeline *t, struct tc_query_session *session,
                           const struct tc__one_ask *ask, const struct tc__place *place,
                           struct tb_diag *diag, tc__one_fn *look, void *look_self) {
  struct tc__bytes bytes;
  struct tb_mem mem;

  if (place->expired)
    return tb_fail(diag, TB_NOTFOUND,
                   "generation %" PRIu64 " has expired: retention took its bytes", ask->gen);
  TB_TRY(tc__bytes_read(t, session, place, diag, &bytes));
  const struct to_scene_source source = tc__bytes_source(place, &bytes, ask->go_on, ask->self);
  tc__mem_init(t, &mem);
  tb_rc rc = tc__mem_rc(t, look(look_self, &mem, &source, diag), diag);
  tc__bytes_free(&bytes);
  return rc;
}

tb_rc tc__one_read(struct tc_timeline *t, struct tc_query_session *session,
                   const struct tc__one_ask *ask, struct tb_diag *diag, struct tb_mem *mem,
                   tc__one_fn *look, void *look_self) {
  struct tc__places places = { .mem = mem };

  tb_rc rc = tc__places_find_gen(session, ask->stream, ask->gen, diag, &places);
  if (rc == TB_OK) rc = read_and_look(t, session, ask, &places.place[0], diag, look, look_self);
  tc__places_fini(&places);
  return rc;
}
