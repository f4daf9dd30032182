/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what users build on: for any input that the reader accepts, every event can be pulled, viewed and made a span,
 * its stack read by depth; the survey answers; all memory is released. */
#include "fuzz/fuzz.h"
#include "fuzz/trace_budget.h"
#include "online/event/allocfree.h"
#include "online/spans/spans.h"
#include "online/trace/pull.h"
#include "online/trace/survey.h"
#include "wire/spec.h"

enum { MEMORY_MAX = 64 << 20, FUEL = 100000, HEADER = 16 };

struct view {
  struct tb_mem mem;
  struct to_spans *spans;
  struct to_allocfree heap;
  const struct to_generation *gen;
  uint64_t events;
};

static void look_at_stack(const struct to_generation *gen, uint64_t id) {
  uint64_t n = to_stack_length(gen, id);
  struct to_frame frame;

  FUZZ_CHECK(n <= TW_STACK_FRAMES_MAX);
  for (uint64_t depth = n; depth-- > 0;)
    if (!to_stack_at(gen, id, depth, &frame)) return; /* no memory for the table */
  FUZZ_CHECK(!to_stack_at(gen, id, n, &frame));
  FUZZ_CHECK(to_stack_hash(gen, id) == to_stack_hash(gen, id));
}

static tb_rc look_at_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                           size_t n) {
  (void)self;
  (void)gen;
  FUZZ_CHECK(n > 0 && n <= TO_SPANS_SLICE);
  for (; n > 0; n--, spans++) {
    FUZZ_CHECK(spans->kind < TO_SPAN_KINDS && !spans->open);
    if (spans->kind == TO_SPAN_THREAD)
      FUZZ_CHECK(to_thread_state_name((enum to_thread_state)spans->state) != NULL);
  }
  return TB_OK;
}

static tb_rc look_at_open(void *self, const struct to_span *span) {
  (void)self;
  FUZZ_CHECK(span->kind < TO_SPAN_KINDS && span->open);
  return TB_OK;
}

static tb_rc no_open(void *self, const struct to_span *span) {
  (void)self;
  FUZZ_CHECK(span->kind != TO_SPAN_GOROUTINE);
  return TB_OK;
}

/* Looks up the arguments that are stacks or strings by their types. */
static void look_at_args(const struct to_generation *gen, const struct to_event *ev) {
  enum tw_arg_type types[4];
  unsigned n = to_event_args(ev->type, types);
  struct to_string text;

  FUZZ_CHECK(n <= 4);
  for (unsigned i = 0; i < n; i++) {
    if (types[i] == TW_ARG_STACK) look_at_stack(gen, ev->args[i]);
    if (types[i] != TW_ARG_STRING) continue;
    if (ev->type == TW_EV_USER_TASK_END)
      text = to_generation_extra_string(gen, ev->args[i]);
    else if (!to_generation_string(gen, ev->args[i], &text))
      continue;
    FUZZ_CHECK(text.len <= TW_STRING_BYTES_MAX);
    (void)to_reason_find(text);
  }
}

static bool look_at_event(struct view *v, const struct to_generation *gen,
                          const struct to_event *ev) {
  struct to_transition tr;
  struct to_event_range range;
  struct to_heap_event heap;
  uint64_t stack = to_event_stack(ev);
  enum to_event_kind kind = to_event_kind(ev);

  FUZZ_CHECK(kind != TO_KIND_BAD && to_event_kind_name(kind) != NULL);
  if (gen != v->gen && gen != NULL && to_allocfree_generation(&v->heap, gen) != TB_OK) return false;
  v->gen = gen;
  if (kind == TO_KIND_TRANSITION) {
    to_event_transition(ev, &tr);
    FUZZ_CHECK(to_state_name(tr.resource, tr.to) != NULL && to_resource_name(tr.resource) != NULL);
    if (gen != NULL && tr.stack != TO_NO_STACK) look_at_stack(gen, tr.stack);
  }
  if (kind == TO_KIND_METRIC) FUZZ_CHECK(to_metric_name(to_event_metric(ev)) != NULL);
  if (to_event_range(ev, &range)) FUZZ_CHECK(to_range_info(range.kind)->name != NULL);
  if (gen != NULL && stack != TO_NO_STACK) look_at_stack(gen, stack);
  if (gen != NULL) look_at_args(gen, ev);
  FUZZ_CHECK(to_allocfree_event(&v->heap, ev, &heap) == (kind == TO_KIND_EXPERIMENTAL));
  return to_spans_events(v->spans, gen, ev, 1) == TB_OK;
}

static void pull_all(const uint8_t *data, size_t size) {
  const struct to_limits limits = { .fuel_tries = FUEL };
  const struct to_spans_config config = { .wanted = TO_WANT_ALL };
  struct to_part part = { data, size < HEADER ? size : HEADER, HEADER, size, 0 };
  struct view v = { .events = 0 };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_diag diag;

  if (size == 0) return; /* a source never returns 0 bytes */
  tb_diag_clear(&diag);
  tb_mem_init(&v.mem, tb_mem_libc, NULL, MEMORY_MAX);
  to_allocfree_init(&v.heap, &v.mem);
  FUZZ_CHECK(to_spans_new(&v.mem, &config, (struct to_span_sink){ NULL, look_at_spans },
                          &v.spans) == TB_OK);
  FUZZ_CHECK(to_pull_new(&v.mem, &limits, TO_READER_BYTES_STAY, to_part_source(&part), &diag,
                         &pull) == TB_OK);
  tt_tighten(&v.mem, size);
  while (to_pull_next(pull, &ev, &gen) == TB_OK && look_at_event(&v, gen, ev)) v.events++;
  FUZZ_CHECK(to_spans_open(v.spans, look_at_open, NULL) == TB_OK);
  FUZZ_CHECK(to_spans_epoch(v.spans) == TB_OK);
  FUZZ_CHECK(to_spans_open(v.spans, no_open, NULL) == TB_OK);
  to_pull_free(pull);
  to_spans_free(v.spans);
  to_allocfree_fini(&v.heap);
  FUZZ_CHECK(v.mem.bytes == 0);
}

static void survey(const uint8_t *data, size_t size) {
  struct to_survey survey;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_diag_clear(&diag);
  if (to_survey(data, size, size, &mem, &diag, &survey) != TB_OK) FUZZ_CHECK(diag.text[0] != '\0');
  FUZZ_CHECK(mem.bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pull_all(data, size);
  survey(data, size);
  return 0;
}
