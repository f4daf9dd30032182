/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, one after the other, span by span, on one timeline: what a file for another tool is made from.
 *
 * The timeline is the wall clock where the trace says it (Go 1.25 and later), else the trace's own clock from its begin
 * on. A stream has one offset for all of it, so spans of one lane never overlap.
 *
 * Memory    that of a pass (tools/tracectl/query/pass.h) and of its entries.
 * Threads   one.
 * Errors    a sink's code ends the walk. Of a trace: text, after all spans before the fault.
 */
#ifndef TK_CONVERT_WALK_H
#define TK_CONVERT_WALK_H

#include "tools/tracectl/query/entries.h"

struct tk_stream {
  unsigned number; /* from 0 */
  const char *name;
  const struct tk_place *place;
  bool is_remote;             /* a collector's: its name is SERVICE/INSTANCE/ID */
  const struct tk_pass *pass; /* for stacks */
  bool has_wall;
  int64_t offset; /* of the timeline to the trace's clock */
  struct tk_entries entries;
};

/* Nanoseconds on the timeline. */
static inline uint64_t tk_stream_time(const struct tk_stream *stream, to_ns at) {
  return (uint64_t)at + (uint64_t)stream->offset;
}

/* Where the goroutine of a span began: NULL where it is not known yet. Lent until the stream ends. */
const struct to_frame *tk_stream_entry(const struct tk_stream *stream, const struct tk_span *at);
/* "G12 main.serve" */
enum { TK_GOROUTINE_NAME = 256 };
size_t tk_stream_goroutine(const struct tk_stream *stream, const struct tk_span *at,
                           char out[TK_GOROUTINE_NAME]);

/* What a lane shows: the state, why a goroutine waits, the name of a task, of a region, of a range. */
struct to_string tk_span_title(const struct tk_span *at);

struct tk_convert_sink {
  void *self;
  tb_rc (*begin)(void *self, const struct tk_stream *stream);
  tb_rc (*span)(void *self, const struct tk_stream *stream, const struct tk_span *at);
  tb_rc (*end)(void *self, const struct tk_stream *stream); /* NULL: no calls */
};

/* TB_OK; TB_BROKEN: error says where the trace breaks, unless the sink has said it; else the sink's. *out_spans: how many there were. */
TB_MUST tb_rc tk_walk(const struct tk_place *place, unsigned number, bool is_remote,
                      const struct tk_convert_sink *sink, uint64_t *out_spans,
                      char error[TK_QUERY_ERROR]);

#endif
