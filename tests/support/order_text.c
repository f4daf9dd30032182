/* SPDX-License-Identifier: Apache-2.0 */
#include "support/order_text.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/trace_text.h"
#include "wire/batch.h"

enum { IDS_MAX = 64 };

/* Ids that a generation refers to, and those that it defines. */
struct ids {
  uint64_t named[IDS_MAX], defined[IDS_MAX];
  unsigned n_named, n_defined;
};

struct completion {
  struct tb_buf *out, body;
  struct tt_text_event batch;
  unsigned version;
  bool open, any, has_clock;
  uint64_t gen;
  struct ids strings, stacks;
};

static void note(uint64_t *ids, unsigned *n, uint64_t id) {
  for (unsigned i = 0; i < *n; i++)
    if (ids[i] == id) return;
  cr_assert_lt(*n, IDS_MAX, "a text trace names too many ids");
  ids[(*n)++] = id;
}

static void note_event(struct completion *c, const struct tt_text_event *ev) {
  const struct tw_spec *spec = tw_spec(ev->type);
  bool dt = tw_spec_has_dt(spec);

  if (ev->type == TW_EV_STRING) note(c->strings.defined, &c->strings.n_defined, ev->args[0]);
  if (ev->type == TW_EV_STACK) note(c->stacks.defined, &c->stacks.n_defined, ev->args[0]);
  if (ev->type == TW_EV_FREQUENCY) c->has_clock = true;
  for (unsigned i = 0; i < spec->nargs && i + dt < ev->nargs; i++) {
    uint64_t id = ev->args[i + dt];
    if (id == 0) continue;
    if (spec->args[i].type == TW_ARG_STRING) note(c->strings.named, &c->strings.n_named, id);
    if (spec->args[i].type == TW_ARG_STACK) note(c->stacks.named, &c->stacks.n_named, id);
  }
  for (unsigned i = 0; i < ev->nframes; i++) {
    note(c->strings.named, &c->strings.n_named, ev->frames[i][1]);
    note(c->strings.named, &c->strings.n_named, ev->frames[i][2]);
  }
}

static void close_batch(struct completion *c) {
  if (!c->open) return;
  tt_text_encode(c->out, &c->batch);
  tt_text_encode_number(c->out, c->batch.size_given ? c->batch.args[3] : c->body.len);
  tb_buf_add(c->out, c->body.data, c->body.len);
  tb_buf_clear(&c->body);
  c->open = false;
}

static void open_batch(struct completion *c, uint64_t gen, uint64_t time) {
  close_batch(c);
  c->batch = (struct tt_text_event){ .type = TW_EV_EVENT_BATCH,
                                     .nargs = 3,
                                     .args = { gen, UINT64_MAX, time } };
  c->open = true;
}

static bool is_defined(const struct ids *ids, uint64_t id) {
  for (unsigned i = 0; i < ids->n_defined; i++)
    if (ids->defined[i] == id) return true;
  return false;
}

static void add_missing(struct completion *c) {
  if (!c->has_clock) {
    open_batch(c, c->gen, 0);
    if (c->version >= 25) tb_buf_byte(&c->body, TW_EV_SYNC);
    tb_buf_byte(&c->body, TW_EV_FREQUENCY);
    tt_text_encode_number(&c->body, 1000000000);
    if (c->version >= 25)
      tb_buf_add(&c->body, (unsigned char[]){ TW_EV_CLOCK_SNAPSHOT, 1, 2, 3, 4 }, 5);
  }
  open_batch(c, c->gen, 0);
  tb_buf_byte(&c->body, TW_EV_STRINGS);
  for (unsigned i = 0; i < c->strings.n_named; i++) {
    char name[24];
    if (is_defined(&c->strings, c->strings.named[i])) continue;
    int len = snprintf(name, sizeof name, "s%" PRIu64, c->strings.named[i]);
    struct tt_text_event string = { .type = TW_EV_STRING,
                                    .nargs = 1,
                                    .args = { c->strings.named[i] },
                                    .data = (unsigned char *)name,
                                    .len = (size_t)len };
    tt_text_encode(&c->body, &string);
  }
  open_batch(c, c->gen, 0);
  tb_buf_byte(&c->body, TW_EV_STACKS);
  for (unsigned i = 0; i < c->stacks.n_named; i++) {
    struct tt_text_event stack = { .type = TW_EV_STACK,
                                   .nargs = 2,
                                   .args = { c->stacks.named[i] } };
    if (!is_defined(&c->stacks, c->stacks.named[i])) tt_text_encode(&c->body, &stack);
  }
  close_batch(c);
}

static void end_generation(struct completion *c, bool mark) {
  close_batch(c);
  if (!c->any) return;
  add_missing(c);
  if (mark && c->version >= 26) tb_buf_byte(c->out, TW_EV_END_OF_GENERATION);
  c->any = c->has_clock = false;
  c->strings = c->stacks = (struct ids){ 0 };
}

static void take_event(struct completion *c, const struct tt_text_event *ev) {
  bool batch = ev->type == TW_EV_EVENT_BATCH, experimental = ev->type == TW_EV_EXPERIMENTAL_BATCH;

  if (ev->type == TW_EV_END_OF_GENERATION) {
    end_generation(c, false);
    tt_text_encode(c->out, ev);
    return;
  }
  if (batch || experimental) {
    uint64_t gen = ev->args[experimental];
    if (c->any && gen != c->gen) end_generation(c, true);
    close_batch(c);
    c->any = true;
    c->gen = gen;
  }
  note_event(c, ev);
  if (batch) {
    c->batch = *ev;
    c->open = true;
  } else {
    tt_text_encode(c->open ? &c->body : c->out, ev);
  }
}

void tt_trace_bytes(const char *source, struct tb_mem *mem, struct tb_buf *out) {
  unsigned char header[TW_HEADER_BYTES];
  struct completion *c = calloc(1, sizeof *c);
  struct tt_text_event ev;
  struct tt_text text;
  struct tb_diag diag;
  tb_rc rc;

  tb_diag_clear(&diag);
  c->out = out;
  tb_buf_init(&c->body, mem);
  rc = tt_text_open(&text, source, mem, &diag);
  cr_assert_eq(rc, TB_OK, "%s", diag.text);
  c->version = text.version;
  tw_header_write(header, text.version);
  tb_buf_add(out, header, sizeof header);
  while ((rc = tt_text_next(&text, &ev)) == TB_OK) take_event(c, &ev);
  cr_assert_eq(rc, TB_END, "%s", diag.text);
  end_generation(c, true);
  cr_assert_eq(out->rc, TB_OK);
  tb_buf_fini(&c->body);
  tt_text_close(&text);
  free(c);
}

static tb_rc collect(void *self, const struct to_generation *gen, const struct to_event *events,
                     size_t n) {
  struct tt_run *run = self;

  (void)gen;
  if (run->count + n > run->cap) {
    run->cap = (run->count + n) * 2;
    run->events = realloc(run->events, run->cap * sizeof *events);
  }
  memcpy(run->events + run->count, events, n * sizeof *events);
  run->count += n;
  return TB_OK;
}

static tb_rc order_ready(struct to_reader *reader) {
  tb_rc rc;

  while ((rc = to_reader_run(reader, 100)) == TB_AGAIN) {
  }
  return rc;
}

static tb_rc feed(struct tt_run *run, struct to_reader *reader, const unsigned char *bytes,
                  size_t n) {
  while (n > 0) {
    size_t used, chunk = run->feed_bytes == 0 || run->feed_bytes > n ? n : run->feed_bytes;
    tb_rc rc = run->feed_whole_batches ? to_reader_feed_some(reader, bytes, n, chunk, &used)
                                       : to_reader_feed(reader, bytes, chunk, &used);
    if (rc == TB_AGAIN) rc = order_ready(reader);
    if (rc != TB_OK) return rc;
    bytes += used;
    n -= used;
  }
  tb_rc rc = to_reader_finish(reader);
  return rc == TB_AGAIN ? order_ready(reader) : rc;
}

void tt_order_bytes(struct tt_run *run, const void *bytes, size_t n) {
  struct to_event_sink sink = { run, collect };
  struct to_reader *reader;

  run->count = run->looked_at = 0;
  tb_diag_clear(&run->diag);
  if (run->mem.resize == NULL) tb_mem_init(&run->mem, tb_mem_libc, NULL, SIZE_MAX);
  run->rc = to_reader_new(&run->mem, &run->limits, run->flags, sink, &run->diag, &reader);
  if (run->rc != TB_OK) return;
  run->rc = feed(run, reader, bytes, n);
  run->generations = to_reader_generations(reader);
  run->lone_region_ends = to_reader_lone_region_ends(reader);
  const struct tb_diag *wrong = to_reader_misannotated(reader);
  run->misannotated = wrong != NULL ? *wrong : (struct tb_diag){ .rc = TB_OK };
  to_reader_free(reader);
}

struct tt_run tt_order_text(const char *text) {
  return tt_order_text_by(text, 0);
}

struct tt_run tt_order_text_by(const char *text, unsigned flags) {
  struct tt_run run = { .flags = flags };
  struct tb_buf bytes;

  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bytes, &run.mem);
  tt_trace_bytes(text, &run.mem, &bytes);
  tt_order_bytes(&run, bytes.data, bytes.len);
  tb_buf_fini(&bytes);
  cr_assert_eq(run.mem.bytes, 0, "%zu bytes left", run.mem.bytes);
  return run;
}

void tt_run_fini(struct tt_run *run) {
  free(run->events);
  run->events = NULL;
}

static bool matches(const struct to_event *ev, const char *wanted) {
  char have[80];

  snprintf(have, sizeof have, "m=%" PRId64 " %s", ev->m, tw_spec(ev->type)->name);
  return strcmp(have, wanted) == 0;
}

void tt_expect_order_list(struct tt_run *run, const char *first, ...) {
  va_list rest;

  va_start(rest, first);
  for (const char *wanted = first; wanted != NULL; wanted = va_arg(rest, const char *)) {
    while (run->looked_at < run->count && !matches(&run->events[run->looked_at], wanted))
      run->looked_at++;
    cr_assert_lt(run->looked_at, run->count, "\"%s\" does not come, or not in this order", wanted);
    run->looked_at++;
  }
  va_end(rest);
}
