/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over traces, one after the other, span by span, on one timeline, for converting them to files of other tools.
 *
 * The timeline is the wall clock if the trace has it (Go 1.25 and later), otherwise the trace's own clock from its begin on. A
 * stream has a single offset, so spans of one lane never overlap.
 *
 * Memory    that of a pass (tools/tracectl/query/pass.h) and of its entries.
 * Threads   one.
 * Errors    a sink's code ends the walk. For a trace: text, after all spans before the fault.
 */
#ifndef TK_CONVERT_WALK_H
#define TK_CONVERT_WALK_H

#include "tools/tracectl/query/entries.h"

struct tk_stream {
  unsigned number; /* from 0 */
  const char *name;
  const struct tk_place *place;
  bool is_remote;             /* from a collector: the name is SERVICE/INSTANCE/ID */
  const struct tk_pass *pass; /* for stacks */
  bool has_wall;
  int64_t offset; /* added to the trace's clock */
  struct tk_entries entries;
};

/* Nanoseconds on the timeline. */
static inline uint64_t tk_stream_time(const struct tk_stream *stream, to_ns at) {
  return (uint64_t)at + (uint64_t)stream->offset;
}

/* Returns where the span's goroutine began, or NULL if that is not known yet. Lent until the stream ends. */
const struct to_frame *tk_stream_entry(const struct tk_stream *stream, const struct tk_span *at);
/* "G12 main.serve" */
enum { TK_GOROUTINE_NAME = 256 };
size_t tk_stream_goroutine(const struct tk_stream *stream, const struct tk_span *at,
                           char out[TK_GOROUTINE_NAME]);

/* Returns the text of a span: the state, the reason of a wait, or the name of a task, region or range. */
struct to_string tk_span_title(const struct tk_span *at);

struct tk_convert_sink {
  void *self;
  tb_rc (*begin)(void *self, const struct tk_stream *stream);
  tb_rc (*span)(void *self, const struct tk_stream *stream, const struct tk_span *at);
  tb_rc (*end)(void *self, const struct tk_stream *stream); /* NULL: no calls */
};

/* Returns TB_OK, the sink's code, or TB_BROKEN: error says where the trace breaks, unless the sink has reported it. *out_spans: number
 * of spans. */
TB_MUST tb_rc tk_walk(const struct tk_place *place, unsigned number, bool is_remote,
                      const struct tk_convert_sink *sink, uint64_t *out_spans,
                      char error[TK_QUERY_ERROR]);

#endif
