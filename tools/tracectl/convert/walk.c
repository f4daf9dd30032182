/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tk_named {
  uint64_t life;
  const struct to_frame *entry;
  bool is_sure; /* from its creation: not the outermost frame of a stack */
};

static bool is_of_goroutine(const struct to_span *span) {
  return span->life != 0 && (span->kind == TO_SPAN_GOROUTINE || span->kind == TO_SPAN_LIFE);
}

static tb_rc make_room(struct tk_stream *s, uint32_t slot) {
  size_t room = s->room == 0 ? 256 : s->room;

  if (slot < s->room) return TB_OK;
  while (room <= slot) room *= 2;
  struct tk_named *goroutine = realloc(s->goroutine, room * sizeof *goroutine);
  if (goroutine == NULL) return TB_NOMEM;
  memset(goroutine + s->room, 0, (room - s->room) * sizeof *goroutine);
  s->goroutine = goroutine;
  s->room = room;
  return TB_OK;
}

/* Of a life its creation says the entry; else it is the outermost frame of any of its stacks. */
static tb_rc look_at(struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_life = span->kind == TO_SPAN_LIFE;

  if (!is_of_goroutine(span)) return TB_OK;
  TB_TRY(make_room(s, span->slot));
  struct tk_named *named = &s->goroutine[span->slot];
  if (named->life != span->life) *named = (struct tk_named){ .life = span->life };
  if (named->is_sure || (named->entry != NULL && !is_life)) return TB_OK;
  uint32_t number = at->stack > TO_STACK_OTHER || is_life ? at->stack : at->end_stack;
  const struct to_callstack *stack = tk_pass_stack(s->pass, number);
  if (stack == NULL || stack->len == 0) return TB_OK;
  named->is_sure = is_life;
  named->entry = stack->frames[is_life ? 0 : stack->len - 1];
  return TB_OK;
}

const struct to_frame *tk_stream_entry(const struct tk_stream *s, const struct tk_span *at) {
  uint32_t slot = at->span->slot;

  if (at->span->life == 0 || slot >= s->room) return NULL;
  return s->goroutine[slot].life == at->span->life ? s->goroutine[slot].entry : NULL;
}

size_t tk_stream_goroutine(const struct tk_stream *s, const struct tk_span *at,
                           char out[TK_GOROUTINE_NAME]) {
  const struct to_frame *entry = tk_stream_entry(s, at);
  int n = snprintf(out, TK_GOROUTINE_NAME, "G%" PRId64 "%s%s", at->span->id,
                   entry != NULL ? " " : "", entry != NULL ? entry->function.data : "");

  return n < TK_GOROUTINE_NAME ? (size_t)n : TK_GOROUTINE_NAME - 1;
}

static struct to_string plain(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

static struct to_string of_goroutine(const struct to_span *span) {
  static const char *const states[] = { "undetermined", "not exist", "runnable",
                                        "running",      "waiting",   "syscall" };
  const char *reason = to_reason_info((enum to_reason)span->reason)->text;

  if (span->state == TO_GO_WAITING && reason != NULL && reason[0] != 0) return plain(reason);
  return plain(states[span->state]);
}

struct to_string tk_span_title(const struct tk_span *at) {
  static const char *const thread[] = { "idle", "running", "syscall", "blocked" };
  const struct to_span *span = at->span;

  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return of_goroutine(span);
  case TO_SPAN_THREAD: return plain(thread[span->state]);
  case TO_SPAN_RANGE: return plain(to_range_info((enum to_range_kind)span->state)->name);
  case TO_SPAN_METRIC: return plain(to_metric_name((enum to_metric)span->state));
  default: return span->more != NULL ? span->more->name : plain("");
  }
}

static void set_clock(struct tk_stream *s, const struct tk_span *first) {
  s->has_wall = first->has_wall;
  s->offset = first->has_wall ? (int64_t)(first->wall_ns - (uint64_t)first->span->from)
                              : -tk_pass_start(s->pass);
}

tb_rc tk_walk(const struct tk_place *place, unsigned number, bool is_remote,
              const struct tk_convert_sink *sink, uint64_t *out_spans, char error[TK_QUERY_ERROR]) {
  struct tk_stream s = {
    .number = number, .name = place->name, .place = place, .is_remote = is_remote
  };
  struct tk_pass *pass;
  struct tk_span at;
  tb_rc rc = TB_OK;
  int got = 0;

  *out_spans = 0;
  if (!tk_pass_begin(place, UINT32_MAX, &pass, error)) return TB_BROKEN;
  s.pass = pass;
  while (rc == TB_OK && (got = tk_pass_next(pass, &at, error)) == 1) {
    bool is_first = (*out_spans)++ == 0;
    if (is_first) set_clock(&s, &at);
    if (is_first) rc = sink->begin(sink->self, &s);
    if (rc == TB_OK) rc = look_at(&s, &at);
    if (rc == TB_OK) rc = sink->span(sink->self, &s, &at);
  }
  if (rc == TB_OK && *out_spans > 0 && sink->end != NULL) rc = sink->end(sink->self, &s);
  free(s.goroutine);
  tk_pass_end(pass);
  return rc == TB_OK && got < 0 ? TB_BROKEN : rc;
}
