/* SPDX-License-Identifier: Apache-2.0 */
/* The Trace Event Format of Chromium's viewer, as JSON. A stream is four processes, for goroutines, Ps, threads and ranges, with a row for
 * each of these. Times are microseconds. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/term/out.h"
#include "tools/tracectl/term/quote.h"
#include "tools/tracectl/term/tracectl.h"

enum lane { GOROUTINES, PROCS, THREADS, RANGES, LANES };

struct chrome {
  struct tk_out *out;
  bool has_any;
  uint64_t wakes;
  struct tb_map named; /* rows of Ps and threads that have a name */
};

static void put_string(struct chrome *c, const char *label, struct to_string text) {
  tk_out_text(c->out, label);
  tk_out_json_string(c->out, text.data == NULL ? "" : text.data, text.len);
}

static struct to_string text_of(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

static void put_us(struct chrome *c, const char *label, uint64_t ns) {
  unsigned rest = (unsigned)(ns % 1000);
  const char part[] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                        (char)('0' + rest % 10), '\0' };

  tk_out_text(c->out, label);
  tk_out_u64(c->out, ns / 1000);
  tk_out_text(c->out, part);
}

static void put_number(struct chrome *c, const char *label, uint64_t value) {
  tk_out_text(c->out, label);
  tk_out_u64(c->out, value);
}

static void begin_event(struct chrome *c, const char *phase, const struct tk_stream *s,
                        enum lane lane, uint64_t row) {
  tk_out_text(c->out, c->has_any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
  c->has_any = true;
  tk_out_text(c->out, phase);
  put_number(c, "\",\"pid\":", s->number * LANES + lane + 1);
  put_number(c, ",\"tid\":", row);
}

static tb_rc end_event(struct chrome *c) {
  tk_out_byte(c->out, '}');
  return c->out->error == 0 ? TB_OK : TB_IO;
}

static tb_rc put_name(struct chrome *c, const struct tk_stream *s, const char *what, enum lane lane,
                      uint64_t row, struct to_string name) {
  begin_event(c, "M", s, lane, row);
  put_string(c, ",\"name\":", text_of(what));
  put_string(c, ",\"args\":{\"name\":", name);
  tk_out_byte(c->out, '}');
  return end_event(c);
}

/* Names a row once. */
static tb_rc name_row(struct chrome *c, const struct tk_stream *s, enum lane lane, uint64_t row,
                      const char *what, int64_t number) {
  char name[40];
  uint64_t *known;
  bool is_fresh;

  TB_TRY(tb_map_put(&c->named, (uint64_t)lane << 60 | row, &known, &is_fresh));
  if (!is_fresh) return TB_OK;
  snprintf(name, sizeof name, "%s%" PRId64, what, number);
  return put_name(c, s, "thread_name", lane, row, text_of(name));
}

static void put_place(struct chrome *c, const struct tk_stream *s, const char *label,
                      uint32_t number) {
  const struct to_frame *frame = to_callstack_own(tk_pass_stack(s->pass, number));

  if (frame == NULL) return;
  put_string(c, label, frame->function);
  tk_out_text(c->out, ",\"file\":");
  tk_out_json_string(c->out, frame->file.data, frame->file.len);
  put_number(c, ",\"line\":", frame->line);
}

/* A complete event. An open span has no end; the viewer draws it to the end of the picture. */
static void begin_slice(struct chrome *c, const struct tk_stream *s, const struct to_span *span,
                        enum lane lane, uint64_t row, struct to_string name, const char *category) {
  begin_event(c, span->open ? "B" : "X", s, lane, row);
  put_us(c, ",\"ts\":", tk_stream_time(s, span->from));
  if (!span->open) put_us(c, ",\"dur\":", (uint64_t)(span->until - span->from));
  put_string(c, ",\"name\":", name);
  put_string(c, ",\"cat\":", text_of(category));
  tk_out_text(c->out, ",\"args\":{\"stream\":");
  tk_out_json_string(c->out, s->name, strlen(s->name));
}

static tb_rc end_slice(struct chrome *c) {
  tk_out_byte(c->out, '}');
  return end_event(c);
}

/* An arrow from the waker's row to the woken one's. */
static tb_rc put_wake(struct chrome *c, const struct tk_stream *s, const struct to_span *span) {
  uint64_t id = ++c->wakes;

  for (int end = 0; end < 2; end++) {
    begin_event(c, end ? "f" : "s", s, GOROUTINES, end ? span->life : span->by_life);
    put_us(c, ",\"ts\":", tk_stream_time(s, span->from));
    put_number(c, ",\"id\":", id);
    put_string(c, ",\"name\":", text_of("wake"));
    put_string(c, ",\"cat\":", text_of("wake"));
    if (end) put_string(c, ",\"bp\":", text_of("e"));
    TB_TRY(end_event(c));
  }
  return TB_OK;
}

static tb_rc put_goroutine(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_runnable = span->state == TO_GO_RUNNABLE;
  char name[TK_GOROUTINE_NAME];

  if (span->state == TO_GO_RUNNING && span->proc != TO_NONE) {
    TB_TRY(name_row(c, s, PROCS, (uint64_t)span->proc, "P", span->proc));
    size_t n = tk_stream_goroutine(s, at, name);
    begin_slice(c, s, span, PROCS, (uint64_t)span->proc, (struct to_string){ name, n },
                "goroutine");
    TB_TRY(end_slice(c));
  }
  if (is_runnable && span->cause == TO_CAUSE_UNBLOCKED && span->by_life != 0)
    TB_TRY(put_wake(c, s, span));
  begin_slice(c, s, span, GOROUTINES, span->life, tk_span_title(at), "goroutine");
  if (is_runnable) put_string(c, ",\"cause\":", text_of(to_cause_name((enum to_cause)span->cause)));
  put_place(c, s, ",\"function\":", at->stack);
  return end_slice(c);
}

/* For spans that may overlap. */
static tb_rc put_async(struct chrome *c, const struct tk_stream *s, const struct to_span *span,
                       uint64_t id, struct to_string name, const char *category) {
  for (int end = 0; end < (span->open ? 1 : 2); end++) {
    begin_event(c, end ? "e" : "b", s, GOROUTINES, span->life);
    put_us(c, ",\"ts\":", tk_stream_time(s, end ? span->until : span->from));
    put_number(c, ",\"id\":", id);
    put_string(c, ",\"name\":", name);
    put_string(c, ",\"cat\":", text_of(category));
    TB_TRY(end_event(c));
  }
  return TB_OK;
}

static tb_rc put_range(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_of_goroutine = span->life != 0 && span->state == TO_RANGE_GC_MARK_ASSIST;

  if (is_of_goroutine)
    return put_async(c, s, span, span->life, tk_span_title(at), "garbage collector");
  bool is_of_proc = span->state == TO_RANGE_GC_SWEEP;
  uint64_t row = is_of_proc ? TO_RANGES + (uint64_t)span->id : span->state;
  if (is_of_proc) TB_TRY(name_row(c, s, RANGES, row, "sweep on P", span->id));
  begin_slice(c, s, span, RANGES, row, tk_span_title(at), "range");
  if (span->more != NULL) put_string(c, ",\"reason\":", span->more->name);
  put_place(c, s, ",\"function\":", at->stack);
  return end_slice(c);
}

static tb_rc put_log(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  begin_event(c, "i", s, GOROUTINES, at->span->life);
  put_us(c, ",\"s\":\"t\",\"ts\":", tk_stream_time(s, at->span->from));
  put_string(c, ",\"name\":", at->span->more->text);
  put_string(c, ",\"cat\":\"log\",\"args\":{\"category\":", at->span->more->name);
  return end_slice(c);
}

static tb_rc put_sample(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  begin_event(c, "i", s, GOROUTINES, at->span->life);
  put_us(c, ",\"s\":\"t\",\"ts\":", tk_stream_time(s, at->span->from));
  tk_out_text(c->out, ",\"name\":\"CPU sample\",\"cat\":\"sample\",\"args\":{\"stream\":");
  tk_out_json_string(c->out, s->name, strlen(s->name));
  put_place(c, s, ",\"function\":", at->stack);
  return end_slice(c);
}

static tb_rc put_metric(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  begin_event(c, "C", s, RANGES, 0);
  put_us(c, ",\"ts\":", tk_stream_time(s, at->span->from));
  put_string(c, ",\"name\":", tk_span_title(at));
  put_number(c, ",\"args\":{\"value\":", at->span->more->value);
  return end_slice(c);
}

static tb_rc put_thread(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  uint64_t row = (uint64_t)at->span->id;

  TB_TRY(name_row(c, s, THREADS, row, "thread ", at->span->id));
  begin_slice(c, s, at->span, THREADS, row, tk_span_title(at), "thread");
  return end_slice(c);
}

static tb_rc name_goroutine(struct chrome *c, const struct tk_stream *s, const struct tk_span *at) {
  char name[TK_GOROUTINE_NAME];
  size_t n = tk_stream_goroutine(s, at, name);

  return put_name(c, s, "thread_name", GOROUTINES, at->span->life, (struct to_string){ name, n });
}

/* ---- the format ---- */

static tb_rc chrome_open(void *self, FILE *file, const struct tk_format_options *options) {
  struct chrome *c = self;

  (void)options;
  tb_map_init(&c->named, &tk_mem, tb_seed());
  TB_TRY(tb_mem_alloc(&tk_mem, sizeof *c->out, &c->out));
  tk_out_init(c->out, fileno(file));
  tk_out_text(c->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  return TB_OK;
}

static void chrome_fini(void *self) {
  struct chrome *c = self;

  tb_map_fini(&c->named);
  tb_mem_free(&tk_mem, c->out, sizeof *c->out);
}

static tb_rc chrome_begin(void *self, const struct tk_stream *s) {
  static const char *const lanes[LANES] = { "goroutines", "Ps", "threads",
                                            "garbage collector, stops, metrics" };
  struct chrome *c = self;
  char name[300];

  tb_map_clear(&c->named);
  for (unsigned lane = 0; lane < LANES; lane++) {
    snprintf(name, sizeof name, "%.200s: %s", s->name, lanes[lane]);
    TB_TRY(put_name(c, s, "process_name", (enum lane)lane, 0, text_of(name)));
  }
  for (unsigned range = 0; range <= TO_RANGE_GC_MARK; range++)
    TB_TRY(put_name(c, s, "thread_name", RANGES, range,
                    text_of(to_range_info((enum to_range_kind)range)->name)));
  return TB_OK;
}

static tb_rc chrome_span(void *self, const struct tk_stream *s, const struct tk_span *at) {
  const struct to_span *span = at->span;
  struct chrome *c = self;

  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return put_goroutine(c, s, at);
  case TO_SPAN_LIFE: return name_goroutine(c, s, at);
  case TO_SPAN_RANGE: return put_range(c, s, at);
  case TO_SPAN_TASK: return put_async(c, s, span, span->more->value, tk_span_title(at), "task");
  case TO_SPAN_REGION: return put_async(c, s, span, span->life, tk_span_title(at), "region");
  case TO_SPAN_LOG: return put_log(c, s, at);
  case TO_SPAN_SAMPLE: return put_sample(c, s, at);
  case TO_SPAN_METRIC: return put_metric(c, s, at);
  case TO_SPAN_THREAD: return put_thread(c, s, at);
  default: return TB_OK;
  }
}

static tb_rc chrome_close(void *self) {
  struct chrome *c = self;

  tk_out_text(c->out, "\n]}\n");
  tk_out_flush(c->out);
  return c->out->error == 0 ? TB_OK : TB_IO;
}

const struct tk_format tk_format_chrome = {
  .name = "chrome",
  .about = "Chromium's JSON: open it in chrome://tracing or ui.perfetto.dev",
  .bytes = sizeof(struct chrome),
  .open = chrome_open,
  .begin = chrome_begin,
  .span = chrome_span,
  .close = chrome_close,
  .fini = chrome_fini,
};
