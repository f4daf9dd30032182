/* SPDX-License-Identifier: Apache-2.0 */
/* The object that makes spans: its creation and release, its slices, and stacks that outlive their generation. */
#include "online/spans/spans.h"

#include <string.h>

#include "online/spans/state.h"

enum { SLOTS_MIN = 64, WALKED_PER_EVENT = 8, WALKED_FREE = 1 << 22 };

const char *to_span_kind_name(enum to_span_kind kind) {
  static const char *const names[TO_SPAN_KINDS] = { "goroutine", "syscall", "life",  "proc",
                                                    "thread",    "range",   "task",  "region",
                                                    "log",       "sample",  "metric" };
  return names[kind];
}

const char *to_thread_state_name(enum to_thread_state state) {
  static const char *const names[] = { "Idle", "Running", "Syscall", "Blocked" };
  return names[state];
}

const char *to_cause_name(enum to_cause cause) {
  static const char *const names[TO_CAUSES] = { "unknown",   "created", "unblocked",
                                                "preempted", "yielded", "syscall" };
  return names[cause];
}

tb_rc to__spans_flush(struct to_spans *s, const struct to_generation *gen) {
  unsigned n = s->n;

  s->n = 0;
  tb_rc rc = n == 0 ? TB_OK : s->sink.spans(s->sink.self, gen, s->slice->out, n);
  while (s->n_done > 0) to__name_release(&s->names, s->slice->done[--s->n_done]);
  return rc;
}

/* --- stacks that outlive their generation ------------------------------------------------------ */

tb_rc to__spans_keep(struct to_spans *s, const struct to_generation *gen, uint64_t *stack) {
  uint32_t number = TO_STACK_OTHER;

  if (*stack == 0 || *stack >= TO_STACK_KEPT) return TB_OK;
  if (gen != NULL) TB_TRY(to_stack_table_index(&s->stacks, gen, *stack, &number));
  *stack = TO_STACK_KEPT | number;
  return TB_OK;
}

/* Go restates every goroutine in each generation, so walking over all costs less than events do. A forged trace of many
 * goroutines and many tiny generations is treated as if it had a hole. */
static bool walks_too_much(struct to_spans *s) {
  s->walked += s->slots_end + s->tasks.slots + s->regions.slots;
  for (unsigned kind = 0; kind < TO_RANGES; kind++) s->walked += s->ranges[kind].slots;
  return s->walked > WALKED_FREE + WALKED_PER_EVENT * s->events;
}

/* gen NULL: its tables no longer exist, and the stacks are lost. */
static tb_rc keep_stacks(struct to_spans *s, const struct to_generation *gen) {
  if (walks_too_much(s)) return to_spans_epoch(s);
  for (uint32_t slot = 0; slot < s->slots_end; slot++) {
    if (s->lives[slot].life == 0) continue;
    TB_TRY(to__spans_keep(s, gen, &s->lives[slot].stack));
    if (s->lives[slot].state == TO_GO_RUNNABLE &&
        (s->sums != NULL || to__wants(s, TO_WANT_GO(RUNNABLE))))
      TB_TRY(to__spans_keep(s, gen, &s->lives[slot].made_by_stack));
    if (!to__wants(s, TO_WANT(LIFE))) continue;
    TB_TRY(to__spans_keep(s, gen, &s->births[slot].entry));
    TB_TRY(to__spans_keep(s, gen, &s->births[slot].stack));
  }
  return to__spans_rare_stacks(s, gen);
}

tb_rc to__spans_lose_stacks(struct to_spans *s) {
  return keep_stacks(s, NULL);
}

tb_rc to_spans_generation_ends(struct to_spans *s, const struct to_generation *gen) {
  TB_TRY(keep_stacks(s, gen));
  s->kept = true;
  return TB_OK;
}

tb_rc to__stack_number(struct to_stack_table *stacks, const struct to_generation *gen,
                       uint64_t stack, uint32_t *out) {
  uint64_t number = stack & ~TO_STACK_KEPT;

  *out = TO_STACK_EMPTY;
  if (stack >= TO_STACK_KEPT) { /* a forged id */
    if (number < stacks->count) *out = (uint32_t)number;
    return TB_OK;
  }
  return stack == 0 || gen == NULL ? TB_OK : to_stack_table_index(stacks, gen, stack, out);
}

tb_rc to_spans_stack(struct to_spans *s, const struct to_generation *gen, uint64_t stack,
                     uint32_t *out) {
  return to__stack_number(&s->stacks, gen, stack, out);
}

const struct to_reason_info *to_spans_reason(const struct to_spans *s, unsigned reason) {
  return to_reasons_info(&s->known_reasons, reason);
}

const struct to_stack_table *to_spans_stack_table(const struct to_spans *s) {
  return &s->stacks;
}

const struct to_reasons *to_spans_reasons(const struct to_spans *s) {
  return &s->known_reasons;
}

enum to_program to_spans_program(const struct to_spans *s) {
  return s->program;
}

const struct to_lock_table *to_spans_locks(const struct to_spans *s) {
  return &s->locks;
}

uint32_t to_spans_stacks(const struct to_spans *s) {
  return (uint32_t)s->stacks.count;
}

const struct to_callstack *to_spans_callstack(const struct to_spans *s, uint32_t number) {
  return to_stack_table_stack(&s->stacks, number);
}

to_ns to_spans_now(const struct to_spans *s) {
  return s->now;
}

void to_spans_want_pieces(struct to_spans *s, bool wanted) {
  s->wanted = wanted ? s->wanted | TO_WANT(SYSCALL) : s->wanted & ~TO_WANT(SYSCALL);
}

uint64_t to_spans_wasted(const struct to_spans *s) {
  return s->wasted + (s->wasting ? (uint64_t)s->now - (uint64_t)s->wasting_since : 0);
}

uint64_t to_spans_stopped(const struct to_spans *s) {
  return s->stops.total + (s->stops.n > 0 ? to__runnable_time(s, s->now) - s->stops.since : 0);
}

/* Returns true if the goroutine in this slot is in a system call that has this P. */
static bool is_in_call(const struct to_spans *s, uint32_t slot, int64_t proc) {
  const struct to_life *g = &s->lives[slot];

  return g->life != 0 && g->state == TO_GO_SYSCALL && !g->without_p && g->proc == proc;
}

uint64_t to_spans_call_time(const struct to_spans *s, int64_t proc, to_ns now) {
  uint64_t place = (uint64_t)proc + 1;

  if (place > TO_SPANS_PROCS_NEAR) return 0;
  /* A goroutine whose call was under way when the trace began never ran on the P. */
  uint32_t slot = is_in_call(s, s->runs_on[place], proc) ? s->runs_on[place] : s->calls_on[place];
  uint64_t ns = s->call_ns[place];
  /* Spans are at most a slice ahead of an analysis: the call may begin after now. */
  if (is_in_call(s, slot, proc) && s->lives[slot].piece_since < now)
    ns += (uint64_t)now - (uint64_t)s->lives[slot].piece_since;
  /* In a forged trace a call may end without its time being added. */
  return (int64_t)ns < 0 ? 0 : ns;
}

void to_spans_states(struct to_spans *s, struct to_spans_states *out) {
  for (unsigned state = 0; state <= TO_GO_SYSCALL; state++) {
    struct to_state_count *count = &s->state_count[state];
    out->state[state] = (struct to_spans_in_state){
      .now = count->n, .most = count->most, .total = count->area + count->n * (uint64_t)s->now
    };
    count->most = count->n;
  }
}

static tb_rc put_cut(void *self, const struct to_span *span) {
  struct to_spans *s = self;

  if (s->n == TO_SPANS_SLICE) TB_TRY(to__spans_flush(s, NULL));
  struct to_span *cut = &s->slice->out[s->n++];
  *cut = *span;
  cut->open = false;
  if (span->more != NULL) *to__spans_more(s, cut) = *span->more; /* only lent */
  return TB_OK;
}

static void settle_calls(struct to_spans *s) {
  for (int64_t proc = TO_NONE; proc < TO_SPANS_PROCS_NEAR; proc++)
    s->call_ns[proc + 1] = to_spans_call_time(s, proc, s->now);
}

static void clear(struct to_spans *s) {
  to__spans_rare_clear(s);
  to__spans_threads_clear(s);
  s->slots_end = 1;
  s->lives[0] = (struct to_life){ .id = TO_FREE_SLOT };
  memset(s->runs_on, 0, sizeof s->runs_on);
  memset(s->calls_on, 0, sizeof s->calls_on);
  tb_map_clear(&s->runs_on_far);
  tb_map_clear(&s->calls_by_thread);
  tb_map_clear(&s->by_id);
  s->knows_ids = false;
  s->idle = 0;
  s->stops.total = to_spans_stopped(s);
  s->stops.n = 0;
  memset(s->state_count, 0, sizeof s->state_count);
  memset(s->idle_procs, 0, sizeof s->idle_procs);
  to__spans_waste(s, s->now);
  if (s->queues != NULL) to_queues_epoch(s->queues);
  if (s->lock_waits != NULL) to_queues_epoch(&s->lock_waits->queues);
  if (s->wakers != NULL) to_wakers_clear(s->wakers);
  s->failed = TB_OK;
  s->heard = false;
  s->events = s->walked = 0;
}

tb_rc to_spans_epoch(struct to_spans *s) {
  if (!s->heard) return TB_OK;
  tb_rc rc = s->sums == NULL ? TB_OK : to_span_sums_settle(s->sums, 0);
  if (rc == TB_OK) rc = to_spans_open(s, put_cut, s);
  tb_rc flushed = to__spans_flush(s, NULL);
  if (s->sums != NULL) to_span_sums_clear(s->sums);
  settle_calls(s);
  clear(s);
  return rc != TB_OK ? rc : flushed;
}

tb_rc to_spans_new(struct tb_mem *mem, const struct to_spans_config *config,
                   struct to_span_sink sink, struct to_spans **out) {
  struct to_spans *s;

  TB_TRY(tb_mem_alloc(mem, sizeof *s, &s));
  s->mem = mem;
  s->sink = sink;
  s->wanted = config->wanted;
  for (unsigned state = 0; state <= TO_GO_SYSCALL; state++) s->longer_than[state] = -1;
  s->long_wait.min_ns = INT64_MAX;
  s->times_only = config->times_only;
  to_reasons_init(&s->known_reasons, mem);
  for (unsigned reason = 0; reason < TO_REASONS_MAX; reason++) s->waits_longer_than[reason] = -1;
  if (to__wants(s, TO_WANT(GOROUTINE))) s->wanted |= UINT32_MAX << 16;
  if (to__wants(s, TO_WANT_WASTE)) s->wanted |= TO_WANT_STATES;
  to_stack_table_init(&s->stacks, mem,
                      config->stacks_max == 0 ? TO_SPANS_STACKS_MAX : config->stacks_max,
                      config->stacks);
  to_lock_table_init(&s->locks, mem);
  tb_map_init(&s->runs_on_far, mem, tb_seed());
  tb_map_init(&s->calls_by_thread, mem, tb_seed());
  tb_map_init(&s->by_id, mem, tb_seed());
  to__spans_rare_init(s);
  to__spans_threads_init(s);
  s->slice = config->slice;
  tb_rc rc = tb_mem_alloc(mem, SLOTS_MIN * sizeof *s->lives, &s->lives);
  if (rc == TB_OK) rc = tb_mem_alloc(mem, SLOTS_MIN * sizeof *s->births, &s->births);
  if (rc == TB_OK && s->slice == NULL) rc = tb_mem_alloc(mem, sizeof *s->slice, &s->own_slice);
  if (s->slice == NULL) s->slice = s->own_slice;
  if (rc != TB_OK) {
    tb_mem_free(mem, s->lives, SLOTS_MIN * sizeof *s->lives);
    tb_mem_free(mem, s->births, SLOTS_MIN * sizeof *s->births);
    s->lives = NULL;
    s->births = NULL;
    to_spans_free(s);
    return rc;
  }
  s->slots = s->births_room = SLOTS_MIN;
  clear(s);
  *out = s;
  return TB_OK;
}

void to_spans_thin(struct to_spans *s, bool thins) {
  s->thins = thins;
}

bool to_spans_thins(const struct to_spans *s) {
  return s->thins;
}

void to_spans_free(struct to_spans *s) {
  if (s == NULL) return;
  if (s->lives != NULL) clear(s);
  to__spans_rare_fini(s);
  to__spans_threads_fini(s);
  tb_map_fini(&s->runs_on_far);
  tb_map_fini(&s->calls_by_thread);
  tb_map_fini(&s->by_id);
  to_stack_table_fini(&s->stacks);
  to_lock_table_fini(&s->locks);
  to_reasons_fini(&s->known_reasons);
  tb_mem_free(s->mem, s->lives, s->slots * sizeof *s->lives);
  tb_mem_free(s->mem, s->births, s->births_room * sizeof *s->births);
  tb_mem_free(s->mem, s->own_slice, sizeof *s->own_slice);
  tb_mem_free(s->mem, s, sizeof *s);
}
