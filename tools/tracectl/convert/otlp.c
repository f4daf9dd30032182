/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's spans (opentelemetry/proto/trace/v1), as one message TracesData, or posted as several: a task's span is below its parent
 * task's, a region's below its task's. Ids are hashes of stream and task, so converting a trace again gives the same ids. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/convert/otlp_data.h"
#include "tools/tracectl/term/tracectl.h"

/* Field numbers. */
enum {
  SPAN_TRACE_ID = 1,
  SPAN_ID = 2,
  SPAN_PARENT_ID = 4,
  SPAN_NAME = 5,
  SPAN_KIND = 6,
  SPAN_BEGIN = 7,
  SPAN_END = 8,
  SPAN_ATTRIBUTES = 9
};
enum { KIND_INTERNAL = 1 };
enum { FLUSH_BYTES = 256 << 10, DEPTH_MAX = 1000 };

struct otlp {
  struct tk_otlp_data data;
  struct tb_buf spans, span;
  struct tb_map parents; /* task -> parent + 1, from an earlier pass */
  uint64_t stream;       /* a hash of its name */
  uint64_t regions;      /* so far */
};

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t hash = (a ^ b) * UINT64_C(0x9E3779B97F4A7C15);

  hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
  return hash ^ hash >> 32;
}

static uint64_t task_id(const struct otlp *o, uint64_t task) {
  uint64_t id = mix(o->stream, task);

  return id != 0 ? id : 1; /* zero means none */
}

/* Returns the topmost ancestor; a forged trace may have a circle of parents. */
static uint64_t root_of(const struct otlp *o, uint64_t task) {
  for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
    const uint64_t *parent = tb_map_find(&o->parents, task);
    if (parent == NULL || *parent == 0) return task;
    task = *parent - 1;
  }
  return task;
}

static void put_ids(struct otlp *o, uint64_t root, uint64_t id, uint64_t parent) {
  uint64_t trace[2] = { o->stream, root };

  tk_put_bytes(&o->span, SPAN_TRACE_ID, trace, sizeof trace);
  tk_put_bytes(&o->span, SPAN_ID, &id, sizeof id);
  if (parent != 0) tk_put_bytes(&o->span, SPAN_PARENT_ID, &parent, sizeof parent);
}

static tb_rc put_span(struct otlp *o, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;

  tk_put_text(&o->span, SPAN_NAME, tk_span_title(at));
  tk_put_value(&o->span, SPAN_KIND, KIND_INTERNAL);
  tk_put_fixed64(&o->span, SPAN_BEGIN, tk_stream_time(s, span->from));
  tk_put_fixed64(&o->span, SPAN_END, tk_stream_time(s, span->until));
  if (span->life != 0)
    tk_otlp_put_int(&o->data, &o->span, SPAN_ATTRIBUTES, "go.goroutine", span->id);
  if (span->more->value != TO_NO_TASK)
    tk_otlp_put_int(&o->data, &o->span, SPAN_ATTRIBUTES, "go.task", (int64_t)span->more->value);
  tk_put_message(&o->spans, TK_OTLP_ITEMS, &o->span);
  return o->spans.len < FLUSH_BYTES ? o->spans.rc : tk_otlp_send(&o->data, s, &o->spans);
}

static bool has_parent(const struct to_span *task) {
  return task->more->parent != TO_NO_TASK && task->more->parent != 0;
}

/* A program may end a task twice, or end one that began before the trace: such a span has no children. */
static tb_rc put_task(struct otlp *o, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  uint64_t parent = has_parent(span) ? task_id(o, span->more->parent) : 0;
  uint64_t id = task_id(o, span->more->value), root = task_id(o, root_of(o, span->more->value));

  if (!span->from_known) id = mix(id, (uint64_t)span->until);
  put_ids(o, root, id, parent);
  return put_span(o, s, at);
}

static tb_rc put_region(struct otlp *o, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  uint64_t id = mix(mix(o->stream, span->life), ++o->regions), task = span->more->value;
  bool has_task = task != TO_NO_TASK && task != 0;

  if (id == 0) id = 1;
  put_ids(o, has_task ? task_id(o, root_of(o, task)) : id, id, has_task ? task_id(o, task) : 0);
  return put_span(o, s, at);
}

static tb_rc otlp_open(void *self, FILE *file, const struct tk_format_options *options) {
  struct otlp *o = self;

  tb_buf_init(&o->spans, &tk_mem);
  tb_buf_init(&o->span, &tk_mem);
  tb_map_init(&o->parents, &tk_mem, tb_seed());
  return tk_otlp_data_open(&o->data, file, options, "/v1/traces");
}

static void otlp_fini(void *self) {
  struct otlp *o = self;

  tk_otlp_data_fini(&o->data);
  tb_buf_fini(&o->spans);
  tb_buf_fini(&o->span);
  tb_map_fini(&o->parents);
}

/* A task ends before its parents, so parents are read in a pass of their own. */
static tb_rc read_parents(struct otlp *o, const struct tk_place *place) {
  char error[TK_QUERY_ERROR];
  struct tk_pass *pass;
  struct tk_span at;
  tb_rc rc = TB_OK;
  uint64_t *parent;

  if (!tk_pass_begin(place, 1u << TO_SPAN_TASK, &pass, error))
    return TB_OK; /* reported by the main pass */
  while (rc == TB_OK && tk_pass_next(pass, &at, error) == 1) {
    if (at.span->kind != TO_SPAN_TASK || !has_parent(at.span)) continue;
    rc = tb_map_put(&o->parents, at.span->more->value, &parent, NULL);
    if (rc == TB_OK) *parent = at.span->more->parent + 1;
  }
  tk_pass_end(pass);
  return rc;
}

static tb_rc otlp_begin(void *self, const struct tk_stream *s) {
  struct otlp *o = self;

  tb_map_clear(&o->parents);
  o->regions = 0;
  o->stream = tb_hash(TB_HASH_START, s->name, strlen(s->name));
  return read_parents(o, s->place);
}

static tb_rc otlp_span(void *self, const struct tk_stream *s, const struct tk_span *at) {
  if (at->span->kind == TO_SPAN_TASK) return put_task(self, s, at);
  return at->span->kind == TO_SPAN_REGION ? put_region(self, s, at) : TB_OK;
}

static tb_rc otlp_end(void *self, const struct tk_stream *s) {
  struct otlp *o = self;

  return o->spans.len == 0 ? o->spans.rc : tk_otlp_send(&o->data, s, &o->spans);
}

static tb_rc otlp_close(void *self) {
  (void)self;
  return TB_OK;
}

const struct tk_format tk_format_otlp = {
  .name = "otlp",
  .about = "OpenTelemetry's protobuf TracesData: tasks and regions",
  .bytes = sizeof(struct otlp),
  .open = otlp_open,
  .begin = otlp_begin,
  .span = otlp_span,
  .end = otlp_end,
  .close = otlp_close,
  .fini = otlp_fini,
};
