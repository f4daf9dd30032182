/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct to_frame *tk_stream_entry(const struct tk_stream *s, const struct tk_span *at) {
  return tk_entries_find(&s->entries, at);
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

static struct to_string of_goroutine(const struct tk_span *at) {
  const struct to_span *span = at->span;
  const char *reason = at->reason->text;

  if (span->state == TO_GO_WAITING && reason != NULL && reason[0] != 0) return plain(reason);
  return plain(tk_go_state_word(span->state));
}

struct to_string tk_span_title(const struct tk_span *at) {
  const struct to_span *span = at->span;

  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return of_goroutine(at);
  case TO_SPAN_THREAD: return plain(tk_thread_state_word(span->state));
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
    if (rc == TB_OK) rc = tk_entries_look(&s.entries, pass, &at);
    if (rc == TB_OK) rc = sink->span(sink->self, &s, &at);
  }
  if (rc == TB_OK && *out_spans > 0 && sink->end != NULL) rc = sink->end(sink->self, &s);
  tk_entries_fini(&s.entries);
  tk_pass_end(pass);
  if (rc == TB_BROKEN) error[0] = '\0';
  return rc == TB_OK && got < 0 ? TB_BROKEN : rc;
}
