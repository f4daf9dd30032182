/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/state.h"

#include <inttypes.h>

#include "collector/timeline/private.h"
#include "proto/json.h"

enum { IDS_MAX = 20 }; /* goroutines listed per state and stack; the rest is counted */

struct question {
  const struct tc_timeline_state_ask *ask;
  struct tb_buf *out;
};

static void put_goroutine(struct tb_buf *out, const struct to_scene_in_state *g) {
  tb_buf_printf(out,
                "{\"goroutine\":\"%" PRId64 "\",\"since_ns\":\"%" PRId64 "\",\"since_known\":%s}",
                g->id, g->since, g->since_known ? "true" : "false");
}

static void put_state(struct tb_buf *out, const struct to_scene_state *s) {
  tb_buf_printf(out,
                "{\"state\":\"%s\",\"reason\":", to_state_name(TO_RESOURCE_GOROUTINE, s->state));
  tp_json_text(out, s->state == TO_GO_WAITING ? s->reason->display : "");
  tb_buf_printf(out, ",\"count\":%zu", s->n);
  tc__put_stack(out, "stack", s->stack);
  tb_buf_text(out, ",\"goroutines\":[");
  for (size_t i = 0; i < s->n && i < IDS_MAX; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_goroutine(out, &s->goroutine[i]);
  }
  tb_buf_text(out, "]}");
}

static tb_rc write(void *self, const struct to_scene_states *states) {
  struct tb_buf *out = self;

  tb_buf_printf(out, "{\"gen\":%" PRIu64 ",\"ns\":\"%" PRId64 "\",\"goroutines\":%zu,\"states\":[",
                states->gen, states->at, states->goroutines);
  for (size_t i = 0; i < states->n; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_state(out, &states->state[i]);
  }
  tb_buf_text(out, "]}\n");
  return out->rc;
}

static tb_rc find_states(void *self, struct tb_mem *mem, const struct to_scene_source *source,
                         struct tb_diag *diag) {
  const struct question *q = self;

  return to_scene_state_at(mem, source, q->ask->at, diag, write, q->out);
}

tb_rc tc_timeline_state(struct tc_timeline *t, struct tc_query_session *session,
                        const struct tc_timeline_state_ask *ask, struct tb_diag *diag,
                        struct tb_buf *out) {
  const struct tc__one_ask one = { ask->stream, ask->gen, ask->go_on, ask->self };
  struct question question = { ask, out };

  return tc__one_read(t, session, &one, diag, out->mem, find_states, &question);
}
