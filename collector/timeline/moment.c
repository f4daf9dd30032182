/* SPDX-License-Identifier: Apache-2.0 */
#include "scene/moment.h"

#include <inttypes.h>

#include "collector/timeline/private.h"
#include "proto/json.h"

static void put_string(struct tb_buf *out, struct to_string text) {
  tp_json_bytes(out, text.data, text.len);
}

static void put_frame(struct tb_buf *out, const struct to_frame *frame) {
  tb_buf_text(out, "{\"function\":");
  put_string(out, frame->function);
  tb_buf_text(out, ",\"file\":");
  put_string(out, frame->file);
  tb_buf_printf(out, ",\"line\":%" PRIu64 "}", frame->line);
}

static void put_stack(struct tb_buf *out, const char *name, const struct to_callstack *stack) {
  tb_buf_printf(out, ",\"%s\":[", name);
  for (size_t i = 0; stack != NULL && i < stack->len; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_frame(out, stack->frames[i]);
  }
  tb_buf_byte(out, ']');
}

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
  tp_json_text(out, span->state == TO_GO_WAITING ? to_reason_info(span->reason)->display : "");
  tb_buf_printf(out,
                ",\"from_ns\":\"%" PRId64 "\",\"until_ns\":\"%" PRId64
                "\",\"from_known\":%s,\"open\":%s,\"lost_proc\":%s",
                span->from, span->until, word_of(span->from_known), word_of(span->open),
                word_of(span->lost_proc));
  put_id(out, "proc", span->proc);
  put_id(out, "thread", span->thread);
  tb_buf_text(out, ",\"entry\":");
  if (m->entry != NULL)
    put_frame(out, m->entry);
  else
    tb_buf_text(out, "null");
  put_stack(out, "stack", m->stack);
  put_stack(out, "end_stack", m->end_stack);
  put_id(out, "by", span->open ? TO_NONE : span->by);
  put_stack(out, "by_stack", span->open ? NULL : m->by_stack);
  tb_buf_printf(out, ",\"cause\":\"%s\"",
                span->state == TO_GO_RUNNABLE ? to_cause_name(span->cause) : "");
  put_id(out, "creator", m->creator);
  put_stack(out, "creation_stack", m->creation_stack);
  if (m->created_known) tb_buf_printf(out, ",\"created_ns\":\"%" PRId64 "\"", m->created);
  tb_buf_text(out, "}\n");
  return out->rc;
}

static tb_rc find(struct tc_timeline *t, const struct tc_timeline_moment_ask *ask,
                  const struct tc__place *place, const struct tc__bytes *bytes,
                  struct tb_diag *diag, struct tb_buf *out) {
  const struct to_scene_source source = tc__bytes_source(place, bytes, ask->go_on, ask->self);
  struct tb_mem mem;

  tc__mem_init(t, &mem);
  tb_rc rc = tc__mem_rc(t, to_moment_find(&mem, &source, &ask->moment, diag, write, out), diag);
  if (rc == TB_NOTFOUND)
    return tb_fail(diag, rc, "generation %" PRIu64 " has nothing there at that moment", ask->gen);
  return rc;
}

static tb_rc read_and_find(struct tc_timeline *t, struct tc_query_session *session,
                           const struct tc_timeline_moment_ask *ask, const struct tc__place *place,
                           struct tb_diag *diag, struct tb_buf *out) {
  struct tc__bytes bytes;

  if (place->expired)
    return tb_fail(diag, TB_NOTFOUND,
                   "generation %" PRIu64 " has expired: retention took its bytes", ask->gen);
  TB_TRY(tc__bytes_read(t, session, place, diag, &bytes));
  tb_rc rc = find(t, ask, place, &bytes, diag, out);
  tc__bytes_free(&bytes);
  return rc;
}

tb_rc tc_timeline_moment(struct tc_timeline *t, struct tc_query_session *session,
                         const struct tc_timeline_moment_ask *ask, struct tb_diag *diag,
                         struct tb_buf *out) {
  struct tc__places places = { .mem = out->mem };

  tb_rc rc = tc__places_find_gen(session, ask->stream, ask->gen, diag, &places);
  if (rc == TB_OK) rc = read_and_find(t, session, ask, &places.place[0], diag, out);
  tc__places_fini(&places);
  return rc;
}
