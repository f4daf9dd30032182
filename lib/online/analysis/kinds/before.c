/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/kinds/before.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 10 };                    /* a program that begins has a few */
#define BEFORE_KEY (UINT64_C(1) << 33) /* other findings of convoys have lower keys */

/* Functions in which a goroutine of Go waits. */
static const struct {
  const char *function;
  enum to_reason reason;
} calls[] = {
  { "sync.(*Cond).Wait", TO_REASON_SYNC_COND },   { "sync.(*Mutex).Lock", TO_REASON_SYNC },
  { "sync.(*RWMutex).Lock", TO_REASON_SYNC },     { "sync.(*RWMutex).RLock", TO_REASON_SYNC },
  { "sync.(*WaitGroup).Wait", TO_REASON_SYNC },   { "runtime.chansend", TO_REASON_CHAN_SEND },
  { "runtime.chanrecv", TO_REASON_CHAN_RECEIVE }, { "runtime.selectgo", TO_REASON_SELECT },
  { "runtime.netpollblock", TO_REASON_NETWORK },  { "time.Sleep", TO_REASON_SLEEP },
};

static enum to_reason reason_of(const struct to_callstack *stack) {
  for (size_t i = 0; stack != NULL && i < stack->len; i++)
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
      if (strcmp(stack->frames[i]->function.data, calls[k].function) == 0) return calls[k].reason;
  return TO_REASON_OTHER;
}

static bool is_of_runtime(const struct to_callstack *stack) {
  const struct to_frame *entry = stack != NULL ? to_callstack_entry(stack, false) : NULL;

  return entry != NULL && strncmp(entry->function.data, "runtime.", 8) == 0 &&
         strcmp(entry->function.data, "runtime.main") != 0;
}

static tb_rc add_place(struct to_analyses *a, struct tb_arena *arena, uint32_t stack,
                       uint32_t count, struct to__before *out) {
  const struct to_callstack *frames = to_stack_table_stack(a->stacks, stack);
  enum to_reason reason = reason_of(frames);
  bool idle;

  if (is_of_runtime(frames)) return TB_OK;
  TB_TRY(to_idle_ask(&a->idle, stack, reason, &idle));
  if (idle) return TB_OK;
  TB_TRY(TB_ARENA_GROW(arena, out->place, out->room, out->n));
  out->place[out->n++] = (struct to__before_place){ stack, count, reason };
  out->count += count;
  return TB_OK;
}

tb_rc to__before_find(struct to_analyses *a, struct tb_arena *arena, struct to__before *out) {
  const struct to_spans *spans = a->spans;
  size_t stacks = to_spans_stacks(a->spans);
  uint32_t *count, stack;

  *out = (struct to__before){ .since = a->spans->now };
  TB_TRY(tb_arena_alloc(arena, stacks * sizeof *count, &count));
  memset(count, 0, stacks * sizeof *count);
  for (uint32_t slot = 1; slot < spans->slots_end; slot++) {
    const struct to_life *g = &spans->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING || g->known) continue;
    if (g->since < out->since) out->since = g->since;
    TB_TRY(to_spans_stack(a->spans, a->generation, g->stack, &stack));
    if (stack < stacks) count[stack]++; /* a new one is the next report's */
  }
  for (stack = TO_STACK_OTHER + 1; stack < stacks; stack++)
    if (count[stack] > 0) TB_TRY(add_place(a, arena, stack, count[stack], out));
  return TB_OK;
}

static const struct to__before_place *find_most(const struct to__before *before) {
  const struct to__before_place *most = before->place;

  for (size_t i = 1; i < before->n; i++)
    if (before->place[i].count > most->count) most = &before->place[i];
  return most;
}

tb_rc to__before_note(struct to_analyses *a, struct to_draft *d, const struct to__before *before) {
  enum { SENTENCE_BYTES = 480, PART_BYTES = 60 };
  char text[SENTENCE_BYTES], begin[PART_BYTES] = "the trace began", reason[PART_BYTES] = "", *copy;

  if (before->count < MANY) return TB_OK;
  const struct to__before_place *most = find_most(before);
  const struct to_frame *frame = to_callstack_own(to_stack_table_stack(a->stacks, most->stack));
  if (a->epoch_gen > 1)
    snprintf(begin, sizeof begin, "generation %" PRIu64 ", where the analysis begins",
             a->epoch_gen);
  if (most->reason != TO_REASON_OTHER)
    snprintf(reason, sizeof reason, " (%s)", to_reason_info(most->reason)->display);
  int n = snprintf(text, sizeof text,
                   "%" PRIu64 " goroutines wait since before %s: since when, and where they were "
                   "created, is not known; why is read from their stacks. Most of them, %" PRIu32
                   ", wait at %.160s:%" PRIu64 "%s.",
                   before->count, begin, most->count, frame != NULL ? frame->function.data : "?",
                   frame != NULL ? (uint64_t)frame->line : 0, reason);
  TB_TRY(tb_arena_copy(d->arena, text, (size_t)n + 1, &copy));
  return to_draft_note(d, copy);
}

tb_rc to__before_say(struct to_analyses *a, struct to_draft *d) {
  struct to__before before;

  TB_TRY(to__before_find(a, d->arena, &before));
  return to__before_note(a, d, &before);
}

static tb_rc add_queue(struct to_analyses *a, struct to_draft *d, unsigned table,
                       const struct to__before_place *place) {
  enum { STACK, REASON, LONGEST, WAITING };
  const char *reason = to_reason_info(place->reason)->display;
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, table, &row));
  to_draft_stack(&row[STACK], to_stack_table_stack(a->stacks, place->stack));
  to_draft_text(&row[REASON], (struct to_string){ reason, strlen(reason) });
  to_draft_number(&row[LONGEST], place->count);
  to_draft_number(&row[WAITING], place->count);
  return TB_OK;
}

tb_rc to__before_queues(struct to_analyses *a, struct to_draft *d, uint64_t reasons, unsigned table,
                        unsigned longest, int64_t *out_waiting) {
  struct to_draft_value *most = to_draft_figure(d, longest);
  struct to__before before;

  TB_TRY(to__before_find(a, d->arena, &before));
  for (size_t i = 0; i < before.n; i++) {
    const struct to__before_place *place = &before.place[i];
    if ((reasons >> place->reason & 1) == 0) continue;
    *out_waiting += place->count;
    if (place->count > most->value.number) to_draft_number(most, place->count);
    if (place->count > 1) TB_TRY(add_queue(a, d, table, place));
  }
  return to__before_note(a, d, &before);
}

/* ---- findings ---- */

static tb_rc find_convoy(struct to_analyses *a, const struct to__before_place *place, to_ns since,
                         const struct to_finding_sink *sink) {
  enum { WORDS_BYTES = 280 };
  const struct to_callstack *stack = to_stack_table_stack(a->stacks, place->stack);
  const struct to_frame *frame = to_callstack_own(stack);
  char *words;

  if (frame == NULL) return TB_OK;
  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  int n = snprintf(words, WORDS_BYTES,
                   "they wait at %.160s:%" PRIu64 " (%s), since before generation %" PRIu64,
                   frame->function.data, (uint64_t)frame->line,
                   to_reason_info(place->reason)->display, a->epoch_gen);
  sink->finding(sink->self, &(struct to_finding){ .kind = TO_FINDING_CONVOY,
                                                  .key = BEFORE_KEY | place->stack,
                                                  .since = since,
                                                  .goroutine = TO_NONE,
                                                  .count = place->count,
                                                  .stack = stack,
                                                  .words = { words, (size_t)n } });
  return TB_OK;
}

/* Goroutines that send may be a leak: the analysis of leaks knows it from before. */
tb_rc to__before_convoys(struct to_analyses *a, const struct to_finding_sink *sink) {
  struct to__before before;

  if (a->epoch_gen <= 1 || a->generations < TO_CONVOY_STUCK) return TB_OK;
  TB_TRY(to__before_find(a, &a->report_arena, &before));
  for (size_t i = 0; i < before.n; i++) {
    const struct to__before_place *place = &before.place[i];
    if (place->reason == TO_REASON_SYNC && place->count >= TO_CONVOY_LENGTH)
      TB_TRY(find_convoy(a, place, before.since, sink));
  }
  return TB_OK;
}
