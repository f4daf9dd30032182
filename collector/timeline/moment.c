/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/moment.h"

#include <inttypes.h>

#include "collector/timeline/private.h"
#include "proto/json.h"

static void put_id(struct tb_buf *out, const char *name, int64_t id) {
  if (id == TO_NONE)
    tb_buf_printf(out, ",\"%s\":null", name);
  else
    tb_buf_printf(out, ",\"%s\":\"%" PRId64 "\"", name, id);
}

static const char *word_of(bool yes) {
  return yes ? "true" : "false";
}

static tb_rc write(void *self, const struct to_moment *m) {
  const struct to_span *span = &m->span;
  struct tb_buf *out = self;

  tb_buf_printf(out,
                "{\"gen\":%" PRIu64 ",\"goroutine\":\"%" PRId64 "\",\"state\":\"%s\",\"reason\":",
                m->gen, span->id, to_state_name(TO_RESOURCE_GOROUTINE, span->state));
  tp_json_text(out, span->state == TO_GO_WAITING ? m->reason->display : "");
  tb_buf_printf(out,
                ",\"from_ns\":\"%" PRId64 "\",\"until_ns\":\"%" PRId64
                "\",\"from_known\":%s,\"open\":%s,\"lost_proc\":%s",
                span->from, span->until, word_of(span->from_known), word_of(span->open),
                word_of(span->lost_proc));
  put_id(out, "proc", span->proc);
  put_id(out, "thread", span->thread);
  tb_buf_text(out, ",\"entry\":");
  if (m->entry != NULL)
    tc__put_frame(out, m->entry);
  else
    tb_buf_text(out, "null");
  tc__put_stack(out, "stack", m->stack);
  tc__put_stack(out, "end_stack", m->end_stack);
  put_id(out, "by", span->open ? TO_NONE : span->by);
  tc__put_stack(out, "by_stack", span->open ? NULL : m->by_stack);
  tb_buf_printf(out, ",\"cause\":\"%s\"",
                span->state == TO_GO_RUNNABLE ? to_cause_name(span->cause) : "");
  put_id(out, "creator", m->creator);
  tc__put_stack(out, "creation_stack", m->creation_stack);
  if (m->created_known) tb_buf_printf(out, ",\"created_ns\":\"%" PRId64 "\"", m->created);
  tb_buf_text(out, "}\n");
  return out->rc;
}

struct question {
  const struct tc_timeline_moment_ask *ask;
  struct tb_buf *out;
};

static tb_rc find_span(void *self, struct tb_mem *mem, const struct to_scene_source *source,
                       struct tb_diag *diag) {
  const struct question *q = self;
  tb_rc rc = to_moment_find(mem, source, &q->ask->moment, diag, write, q->out);

  if (rc != TB_NOTFOUND) return rc;
  return tb_fail(diag, rc, "generation %" PRIu64 " has no span there at that time", q->ask->gen);
}

tb_rc tc_timeline_moment(struct tc_timeline *t, struct tc_query_session *session,
                         const struct tc_timeline_moment_ask *ask, struct tb_diag *diag,
                         struct tb_buf *out) {
  const struct tc__one_ask one = { ask->stream, ask->gen, ask->go_on, ask->self };
  struct question question = { ask, out };

  return tc__one_read(t, session, &one, diag, out->mem, find_span, &question);
}
