/* SPDX-License-Identifier: Apache-2.0 */
/* What users build on: whatever the reader lets through, every event can be pulled, viewed, put to the model,
 * its stack asked by depth; the survey answers; all memory comes back. */
#include "analysis/model.h"
#include "event/allocfree.h"
#include "fuzz/fuzz.h"
#include "fuzz/trace_budget.h"
#include "trace/pull.h"
#include "trace/survey.h"
#include "wire/spec.h"

enum { MEMORY_MAX = 64 << 20, FUEL = 100000, HEADER = 16 };

struct view {
  struct tb_mem mem;
  struct to_model *model;
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

static void look_at_model(const struct view *v, const struct to_event *ev,
                          const struct to_effects *effects) {
  struct to_goroutine g;
  struct to_thread_now thread;
  struct to_proc_now proc;
  to_ns since;
  bool lower_bound;

  FUZZ_CHECK(effects->threads <= TO_THREAD_CHANGES_MAX && effects->reason < TO_REASONS);
  for (unsigned i = 0; i < effects->threads; i++)
    FUZZ_CHECK(to_thread_state_name(effects->thread[i].to) != NULL);
  if (to_model_goroutine(v->model, ev->g, &g)) FUZZ_CHECK(g.id == ev->g);
  if (to_model_thread(v->model, ev->m, &thread)) FUZZ_CHECK(thread.id == ev->m);
  if (to_model_proc(v->model, ev->p, &proc)) FUZZ_CHECK(proc.id == ev->p);
  for (unsigned kind = 0; kind < TO_RANGES; kind++)
    (void)to_model_range(v->model, (enum to_range_kind)kind, ev->g, &since, &lower_bound);
}

/* Its arguments by their types: what is a stack or a string can be asked for. */
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
  struct to_effects effects;
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
  if (to_model_event(v->model, gen, ev, &effects) != TB_OK) return false;
  look_at_model(v, ev, &effects);
  return true;
}

static void pull_all(const uint8_t *data, size_t size) {
  const struct to_limits limits = { .fuel_tries = FUEL };
  struct to_part part = { data, size < HEADER ? size : HEADER, HEADER, size, 0 };
  struct view v = { .events = 0 };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_goroutine g;
  struct to_pull *pull;
  struct tb_diag diag;

  if (size == 0) return; /* a source never gives nothing */
  tb_diag_clear(&diag);
  tb_mem_init(&v.mem, tb_mem_libc, NULL, MEMORY_MAX);
  to_allocfree_init(&v.heap, &v.mem);
  FUZZ_CHECK(to_model_new(&v.mem, &v.model) == TB_OK);
  FUZZ_CHECK(to_pull_new(&v.mem, &limits, TO_READER_BYTES_STAY, to_part_source(&part), &diag,
                         &pull) == TB_OK);
  tt_tighten(&v.mem, size);
  while (to_pull_next(pull, &ev, &gen) == TB_OK && look_at_event(&v, gen, ev)) v.events++;
  size_t pos = 0, live = 0;
  while (to_model_next_goroutine(v.model, &pos, &g)) live++;
  FUZZ_CHECK(live == to_model_goroutines(v.model));
  to_model_epoch(v.model);
  FUZZ_CHECK(to_model_goroutines(v.model) == 0);
  to_pull_free(pull);
  to_model_free(v.model);
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
