/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's trace packets (perfetto.dev/docs/reference/trace-packet-proto): a stream is a process, with a track for each goroutine
 * (grouped by entry function), P, thread, task, kind of range and metric. A wake-up is a flow from the waker's track to the span in
 * which the woken goroutine waits for a P.
 *
 * Packets are written in the order in which spans end; Perfetto sorts them. A stream is a packet sequence of its own, so interned
 * names and stacks belong to the stream. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/convert/message.h"
#include "tools/tracectl/term/tracectl.h"

/* Field numbers. */
enum { TRACE_PACKET = 1 };
enum {
  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE = 10,
  PACKET_EVENT = 11,
  PACKET_INTERNED = 12,
  PACKET_FLAGS = 13,
  PACKET_TRACK = 60
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum {
  EVENT_ANNOTATION = 4,
  EVENT_TYPE = 9,
  EVENT_TRACK = 11,
  EVENT_CATEGORY = 22,
  EVENT_NAME = 23,
  EVENT_COUNTER = 30,
  EVENT_FLOW = 47,
  EVENT_FLOW_END = 48,
  EVENT_STACK = 56
};
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { INTERNED_FUNCTIONS = 5, INTERNED_FRAMES = 6, INTERNED_STACKS = 7, INTERNED_PATHS = 18 };
enum { FRAME_IID = 1, FRAME_FUNCTION, FRAME_PATH = 5, FRAME_LINE };
enum { STACK_IID = 1, STACK_FRAMES };
enum { STRING_IID = 1, STRING_TEXT };
enum { ANNOTATION_INT = 4, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };

/* Kinds of tracks, a byte of their ids. */
enum track {
  TRACK_OF_PROCESS,
  TRACK_OF_PROCS,
  TRACK_OF_PROC,
  TRACK_OF_GOROUTINES,
  TRACK_OF_ENTRY,
  TRACK_OF_GOROUTINE,
  TRACK_OF_REGIONS, /* a goroutine's */
  TRACK_OF_SAMPLES,
  TRACK_OF_TASKS,
  TRACK_OF_TASK,
  TRACK_OF_RANGE, /* the process's, one for each kind */
  TRACK_OF_RANGES,
  TRACK_OF_GOROUTINE_RANGE,
  TRACK_OF_THREAD,
  TRACK_OF_METRIC
};

struct perfetto {
  FILE *file;
  struct tb_buf packet, event, track, inner, interned, whole;
  struct tb_map known;   /* described tracks, except those of goroutines */
  struct tb_map strings; /* interned texts by address -> number */
  struct tb_map frames, stacks;
  uint64_t numbers;
  bool is_first; /* packet of the sequence */
};

/* ---- packets ---- */

static uint64_t uuid(const struct tk_stream *s, enum track kind, uint64_t id) {
  return (uint64_t)(s->number + 1) << 48 | (uint64_t)kind << 40 | (id & ((UINT64_C(1) << 40) - 1));
}

/* Writes the packet with the stream's sequence. */
static tb_rc write_packet(struct perfetto *p, const struct tk_stream *s) {
  tk_put_value(&p->packet, PACKET_SEQUENCE, s->number + 1);
  tk_put_value(&p->packet, PACKET_FLAGS, p->is_first ? FLAG_CLEARED : FLAG_NEEDS_STATE);
  p->is_first = false;
  tk_put_message(&p->whole, TRACE_PACKET, &p->packet);
  if (p->whole.rc != TB_OK) return p->whole.rc;
  size_t put = fwrite(p->whole.data, 1, p->whole.len, p->file);
  bool is_written = put == p->whole.len;
  tb_buf_clear(&p->whole);
  return is_written ? TB_OK : TB_IO;
}

/* p->event has all fields except type and track. */
static tb_rc write_event(struct perfetto *p, const struct tk_stream *s, to_ns at, unsigned type,
                         uint64_t track) {
  tk_put_value(&p->event, EVENT_TYPE, type);
  tk_put_value(&p->event, EVENT_TRACK, track);
  tk_put_value(&p->packet, PACKET_TIMESTAMP, tk_stream_time(s, at));
  if (p->interned.len > 0) tk_put_message(&p->packet, PACKET_INTERNED, &p->interned);
  tk_put_message(&p->packet, PACKET_EVENT, &p->event);
  return write_packet(p, s);
}

static tb_rc write_slice(struct perfetto *p, const struct tk_stream *s, const struct to_span *span,
                         uint64_t track) {
  TB_TRY(write_event(p, s, span->from, TYPE_BEGIN, track));
  return span->open ? TB_OK : write_event(p, s, span->until, TYPE_END, track);
}

static void name_event(struct perfetto *p, struct to_string name, const char *category) {
  tk_put_text(&p->event, EVENT_NAME, name);
  tk_put_words(&p->event, EVENT_CATEGORY, category);
}

static void annotate(struct perfetto *p, const char *name, struct to_string text) {
  if (text.len == 0) return;
  tk_put_words(&p->inner, ANNOTATION_NAME, name);
  tk_put_text(&p->inner, ANNOTATION_TEXT, text);
  tk_put_message(&p->event, EVENT_ANNOTATION, &p->inner);
}

static void annotate_number(struct perfetto *p, const char *name, int64_t value) {
  if (value == TO_NONE) return;
  tk_put_words(&p->inner, ANNOTATION_NAME, name);
  tk_put_value(&p->inner, ANNOTATION_INT, (uint64_t)value);
  tk_put_message(&p->event, EVENT_ANNOTATION, &p->inner);
}

/* ---- interned stacks ---- */

static tb_rc intern_text(struct perfetto *p, unsigned field, struct to_string text, uint64_t *out) {
  uint64_t *iid;
  bool is_fresh;

  /* A text may be the name of a function and of a file, which have separate numbers. */
  TB_TRY(tb_map_put(&p->strings, (uintptr_t)text.data << 1 | (field == INTERNED_PATHS), &iid,
                    &is_fresh));
  if (is_fresh) {
    *iid = ++p->numbers;
    tk_put_value(&p->inner, STRING_IID, *iid);
    tk_put_text(&p->inner, STRING_TEXT, text);
    tk_put_message(&p->interned, field, &p->inner);
  }
  *out = *iid;
  return TB_OK;
}

static tb_rc intern_frame(struct perfetto *p, const struct to_frame *frame, uint64_t *out) {
  uint64_t *known = tb_map_find(&p->frames, (uintptr_t)frame), function, path, *iid;

  if (known != NULL) {
    *out = *known;
    return TB_OK;
  }
  TB_TRY(intern_text(p, INTERNED_FUNCTIONS, frame->function, &function));
  TB_TRY(intern_text(p, INTERNED_PATHS, frame->file, &path));
  TB_TRY(tb_map_put(&p->frames, (uintptr_t)frame, &iid, NULL));
  *out = *iid = ++p->numbers;
  tk_put_value(&p->inner, FRAME_IID, *iid);
  tk_put_value(&p->inner, FRAME_FUNCTION, function);
  tk_put_value(&p->inner, FRAME_PATH, path);
  tk_put_value(&p->inner, FRAME_LINE, frame->line);
  tk_put_message(&p->interned, INTERNED_FRAMES, &p->inner);
  return TB_OK;
}

/* Perfetto's order: outermost frame first. */
static tb_rc add_stack(struct perfetto *p, const struct tk_stream *s, uint32_t number) {
  const struct to_callstack *stack = tk_pass_stack(s->pass, number);
  uint64_t *iid, frame;
  bool is_fresh;

  if (stack == NULL || stack->len == 0) return TB_OK;
  TB_TRY(tb_map_put(&p->stacks, number, &iid, &is_fresh));
  if (is_fresh) {
    *iid = ++p->numbers;
    tk_put_value(&p->track, STACK_IID, *iid);
    for (size_t i = stack->len; i-- > 0;) {
      TB_TRY(intern_frame(p, stack->frames[i], &frame));
      tk_put_value(&p->track, STACK_FRAMES, frame);
    }
    tk_put_message(&p->interned, INTERNED_STACKS, &p->track);
  }
  tk_put_value(&p->event, EVENT_STACK, *iid);
  return TB_OK;
}

/* ---- tracks ---- */

static tb_rc describe(struct perfetto *p, const struct tk_stream *s, uint64_t id, uint64_t parent,
                      struct to_string name) {
  tk_put_value(&p->track, TRACK_UUID, id);
  tk_put_number(&p->track, TRACK_PARENT, parent);
  tk_put_text(&p->track, TRACK_NAME, name);
  tk_put_message(&p->packet, PACKET_TRACK, &p->track);
  return write_packet(p, s);
}

static struct to_string text_of(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

/* Describes a track once. */
static tb_rc describe_once(struct perfetto *p, const struct tk_stream *s, uint64_t id,
                           uint64_t parent, struct to_string name) {
  uint64_t *known;
  bool is_fresh;

  TB_TRY(tb_map_put(&p->known, id, &known, &is_fresh));
  return is_fresh ? describe(p, s, id, parent, name) : TB_OK;
}

static tb_rc describe_group(struct perfetto *p, const struct tk_stream *s, enum track kind,
                            const char *name) {
  return describe_once(p, s, uuid(s, kind, 0), uuid(s, TRACK_OF_PROCESS, 0), text_of(name));
}

static tb_rc describe_thread(struct perfetto *p, const struct tk_stream *s, int64_t thread) {
  uint64_t id = uuid(s, TRACK_OF_THREAD, (uint64_t)thread), *known;
  char name[40];
  bool is_fresh;

  TB_TRY(tb_map_put(&p->known, id, &known, &is_fresh));
  if (!is_fresh) return TB_OK;
  snprintf(name, sizeof name, "thread %" PRId64, thread);
  tk_put_value(&p->inner, THREAD_PID, s->number + 1);
  tk_put_value(&p->inner, THREAD_TID, (uint64_t)thread);
  tk_put_words(&p->inner, THREAD_NAME, name);
  tk_put_value(&p->track, TRACK_UUID, id);
  tk_put_message(&p->track, TRACK_THREAD, &p->inner);
  tk_put_message(&p->packet, PACKET_TRACK, &p->track);
  return write_packet(p, s);
}

static tb_rc describe_process(struct perfetto *p, const struct tk_stream *s) {
  tk_put_value(&p->inner, PROCESS_PID, s->number + 1);
  tk_put_text(&p->inner, PROCESS_NAME, text_of(s->name));
  tk_put_value(&p->track, TRACK_UUID, uuid(s, TRACK_OF_PROCESS, 0));
  tk_put_message(&p->track, TRACK_PROCESS, &p->inner);
  tk_put_message(&p->packet, PACKET_TRACK, &p->track);
  return write_packet(p, s);
}

/* A goroutine's track is below that of its entry function. */
static tb_rc describe_goroutine(struct perfetto *p, const struct tk_stream *s,
                                const struct tk_span *at) {
  const struct to_frame *entry = tk_stream_entry(s, at);
  struct to_string name = entry != NULL ? entry->function : text_of("not known");
  char goroutine[TK_GOROUTINE_NAME];
  uint64_t number = 0, group;

  TB_TRY(describe_group(p, s, TRACK_OF_GOROUTINES, "goroutines"));
  if (entry != NULL) TB_TRY(intern_text(p, INTERNED_FUNCTIONS, name, &number));
  group = uuid(s, TRACK_OF_ENTRY, number);
  TB_TRY(describe_once(p, s, group, uuid(s, TRACK_OF_GOROUTINES, 0), name));
  name = (struct to_string){ goroutine, tk_stream_goroutine(s, at, goroutine) };
  (void)tb_map_remove(&p->known, uuid(s, TRACK_OF_REGIONS, at->span->life));
  (void)tb_map_remove(&p->known, uuid(s, TRACK_OF_GOROUTINE_RANGE, at->span->life));
  return describe(p, s, uuid(s, TRACK_OF_GOROUTINE, at->span->life), group, name);
}

/* ---- spans ---- */

static uint64_t flow_of(const struct tk_stream *s, const struct to_span *span) {
  return (uint64_t)(s->number + 1) << 56 ^ span->life * UINT64_C(0x9E3779B97F4A7C15) ^
         (uint64_t)span->from;
}

/* Draws the waker's track at that time. */
static tb_rc put_wake(struct perfetto *p, const struct tk_stream *s, const struct to_span *span) {
  char name[40];

  snprintf(name, sizeof name, "wakes G%" PRId64, span->id);
  name_event(p, text_of(name), "wake");
  tk_put_fixed64(&p->event, EVENT_FLOW, flow_of(s, span));
  return write_event(p, s, span->from, TYPE_INSTANT, uuid(s, TRACK_OF_GOROUTINE, span->by_life));
}

static tb_rc put_on_proc(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t id = uuid(s, TRACK_OF_PROC, (uint64_t)at->span->proc);
  char name[TK_GOROUTINE_NAME];

  snprintf(name, sizeof name, "P%" PRId64, at->span->proc);
  TB_TRY(describe_group(p, s, TRACK_OF_PROCS, "Ps"));
  TB_TRY(describe_once(p, s, id, uuid(s, TRACK_OF_PROCS, 0), text_of(name)));
  size_t n = tk_stream_goroutine(s, at, name);
  name_event(p, (struct to_string){ name, n }, "goroutine");
  return write_slice(p, s, at->span, id);
}

static tb_rc put_goroutine(struct perfetto *p, const struct tk_stream *s,
                           const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_runnable = span->state == TO_GO_RUNNABLE;
  bool is_woken = is_runnable && span->cause == TO_CAUSE_UNBLOCKED && span->by_life != 0;
  uint64_t id = uuid(s, TRACK_OF_GOROUTINE, span->life);

  if (span->state == TO_GO_RUNNING && span->proc != TO_NONE) TB_TRY(put_on_proc(p, s, at));
  if (is_woken) TB_TRY(put_wake(p, s, span));
  name_event(p, tk_span_title(at), "goroutine");
  TB_TRY(add_stack(p, s, at->stack));
  if (is_woken) tk_put_fixed64(&p->event, EVENT_FLOW_END, flow_of(s, span));
  if (is_runnable) annotate(p, "cause", text_of(to_cause_name((enum to_cause)span->cause)));
  annotate_number(p, is_runnable ? "made runnable by G" : "ended by G", span->by);
  if (span->state == TO_GO_RUNNING) annotate_number(p, "P", span->proc);
  if (span->state == TO_GO_SYSCALL && span->lost_proc) annotate(p, "P", text_of("lost"));
  return write_slice(p, s, span, id);
}

static tb_rc put_range(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  struct to_string name = tk_span_title(at);
  bool is_of_goroutine = span->life != 0 && span->state == TO_RANGE_GC_MARK_ASSIST;
  uint64_t parent, id;

  if (is_of_goroutine) {
    parent = uuid(s, TRACK_OF_GOROUTINE, span->life);
    id = uuid(s, TRACK_OF_GOROUTINE_RANGE, span->life);
  } else {
    TB_TRY(describe_group(p, s, TRACK_OF_RANGES, "garbage collector and stops"));
    parent = uuid(s, TRACK_OF_RANGES, 0);
    bool is_of_proc = span->state == TO_RANGE_GC_SWEEP;
    id = uuid(s, TRACK_OF_RANGE,
              (uint64_t)span->state << 32 | (is_of_proc ? (uint32_t)span->id : 0));
  }
  TB_TRY(describe_once(p, s, id, parent, name));
  name_event(p, name, "range");
  TB_TRY(add_stack(p, s, at->stack));
  if (span->more != NULL) annotate(p, "reason", span->more->name);
  return write_slice(p, s, span, id);
}

static tb_rc put_task(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t id = uuid(s, TRACK_OF_TASK, at->span->more->value);
  struct to_string name = tk_span_title(at);

  TB_TRY(describe_group(p, s, TRACK_OF_TASKS, "tasks"));
  TB_TRY(describe(p, s, id, uuid(s, TRACK_OF_TASKS, 0), name));
  name_event(p, name, "task");
  annotate_number(p, "task", (int64_t)at->span->more->value);
  return write_slice(p, s, at->span, id);
}

static tb_rc put_region(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t id = uuid(s, TRACK_OF_REGIONS, at->span->life);

  TB_TRY(describe_once(p, s, id, uuid(s, TRACK_OF_GOROUTINE, at->span->life), text_of("regions")));
  name_event(p, tk_span_title(at), "region");
  TB_TRY(add_stack(p, s, at->stack));
  return write_slice(p, s, at->span, id);
}

static tb_rc put_log(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  name_event(p, at->span->more->text, "log");
  annotate(p, "category", at->span->more->name);
  return write_event(p, s, at->span->from, TYPE_INSTANT,
                     uuid(s, TRACK_OF_GOROUTINE, at->span->life));
}

static tb_rc put_sample(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t id = uuid(s, TRACK_OF_SAMPLES, 0);

  TB_TRY(describe_once(p, s, id, uuid(s, TRACK_OF_PROCESS, 0), text_of("CPU samples")));
  name_event(p, text_of("CPU sample"), "sample");
  TB_TRY(add_stack(p, s, at->stack));
  annotate_number(p, "G", at->span->life != 0 ? at->span->id : TO_NONE);
  return write_event(p, s, at->span->from, TYPE_INSTANT, id);
}

static tb_rc put_metric(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t id = uuid(s, TRACK_OF_METRIC, at->span->state), *known;
  bool is_fresh;

  TB_TRY(tb_map_put(&p->known, id, &known, &is_fresh));
  if (is_fresh) {
    tk_put_value(&p->track, TRACK_UUID, id);
    tk_put_value(&p->track, TRACK_PARENT, uuid(s, TRACK_OF_PROCESS, 0));
    tk_put_text(&p->track, TRACK_NAME, tk_span_title(at));
    tk_put_message(&p->track, TRACK_COUNTER, &p->inner);
    tk_put_message(&p->packet, PACKET_TRACK, &p->track);
    TB_TRY(write_packet(p, s));
  }
  tk_put_value(&p->event, EVENT_COUNTER, at->span->more->value);
  return write_event(p, s, at->span->from, TYPE_COUNTER, id);
}

static tb_rc put_thread(struct perfetto *p, const struct tk_stream *s, const struct tk_span *at) {
  TB_TRY(describe_thread(p, s, at->span->id));
  name_event(p, tk_span_title(at), "thread");
  return write_slice(p, s, at->span, uuid(s, TRACK_OF_THREAD, (uint64_t)at->span->id));
}

/* ---- the format ---- */

static struct tb_buf *buffer(struct perfetto *p, unsigned i) {
  struct tb_buf *const all[] = { &p->packet, &p->event,    &p->track,
                                 &p->inner,  &p->interned, &p->whole };

  return i < sizeof all / sizeof *all ? all[i] : NULL;
}

static struct tb_map *map(struct perfetto *p, unsigned i) {
  struct tb_map *const all[] = { &p->known, &p->strings, &p->frames, &p->stacks };

  return i < sizeof all / sizeof *all ? all[i] : NULL;
}

static tb_rc perfetto_open(void *self, FILE *file, const struct tk_format_options *options) {
  struct perfetto *p = self;

  (void)options;
  p->file = file;
  for (unsigned i = 0; buffer(p, i) != NULL; i++) tb_buf_init(buffer(p, i), &tk_mem);
  for (unsigned i = 0; map(p, i) != NULL; i++) tb_map_init(map(p, i), &tk_mem, tb_seed());
  return TB_OK;
}

static void perfetto_fini(void *self) {
  struct perfetto *p = self;

  for (unsigned i = 0; buffer(p, i) != NULL; i++) tb_buf_fini(buffer(p, i));
  for (unsigned i = 0; map(p, i) != NULL; i++) tb_map_fini(map(p, i));
}

static tb_rc perfetto_begin(void *self, const struct tk_stream *s) {
  struct perfetto *p = self;

  for (unsigned i = 0; map(p, i) != NULL; i++) tb_map_clear(map(p, i));
  tb_buf_clear(&p->interned);
  p->numbers = 0;
  p->is_first = true;
  return describe_process(p, s);
}

static tb_rc perfetto_span(void *self, const struct tk_stream *s, const struct tk_span *at) {
  struct perfetto *p = self;

  switch (at->span->kind) {
  case TO_SPAN_GOROUTINE: return put_goroutine(p, s, at);
  case TO_SPAN_LIFE: return describe_goroutine(p, s, at);
  case TO_SPAN_RANGE: return put_range(p, s, at);
  case TO_SPAN_TASK: return put_task(p, s, at);
  case TO_SPAN_REGION: return put_region(p, s, at);
  case TO_SPAN_LOG: return put_log(p, s, at);
  case TO_SPAN_SAMPLE: return put_sample(p, s, at);
  case TO_SPAN_METRIC: return put_metric(p, s, at);
  case TO_SPAN_THREAD: return put_thread(p, s, at);
  default: return TB_OK; /* Ps and pieces of calls are shown in lanes of goroutines */
  }
}

static tb_rc perfetto_close(void *self) {
  (void)self;
  return TB_OK;
}

const struct tk_format tk_format_perfetto = {
  .name = "perfetto",
  .about = "Perfetto's protobuf: open it in ui.perfetto.dev",
  .bytes = sizeof(struct perfetto),
  .open = perfetto_open,
  .begin = perfetto_begin,
  .span = perfetto_span,
  .close = perfetto_close,
  .fini = perfetto_fini,
};
