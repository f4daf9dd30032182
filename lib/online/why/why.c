/* SPDX-License-Identifier: Apache-2.0 */
#include "online/why/why.h"

#include "online/explain/crowd.h"

static const struct {
  const char *name, *words;
} parts[TO_PATH_PARTS] = {
  [TO_PATH_CPU] = { "cpu", "its own CPU" },
  [TO_PATH_RUNNABLE] = { "runnable", "waiting for a P" },
  [TO_PATH_SYSCALL] = { "syscall", "in system calls" },
  [TO_PATH_ASSIST] = { "gc_assist", "helping the garbage collector" },
  [TO_PATH_STOPPED] = { "stop_the_world", "stop-the-world" },
  [TO_PATH_WAITING] = { "waiting", "waiting" },
  [TO_PATH_NOT_KNOWN] = { "unknown", "not known" },
};

const char *to_why_part_name(enum to_path_part part) {
  return parts[part].name;
}

const char *to_why_part_words(enum to_path_part part) {
  return parts[part].words;
}

void to_why_init(struct to_why *why, const struct to_why_interval *interval,
                 const struct to_spans *spans, struct tb_mem *mem) {
  *why = (struct to_why){ .interval = interval, .spans = spans, .mem = mem };
  to_timeline_init(&why->timeline, mem, interval->from, interval->until);
}

void to_why_fini(struct to_why *why) {
  to_related_fini(&why->related);
  to_path_sum_fini(&why->sum);
  to_path_fini(&why->path);
  to_timeline_fini(&why->timeline);
}

tb_rc to_why_add(struct to_why *why, const struct to_span *span, uint32_t stack,
                 uint32_t by_stack) {
  return to_timeline_add(&why->timeline, span, stack, by_stack);
}

/* Averages the number of runnable goroutines while the subject was runnable. */
static tb_rc average_runnable(struct to_why *why) {
  uint64_t ns = 0, all = 0;
  struct to_crowd crowd;

  TB_TRY(to_crowd_new(&crowd, &why->timeline, why->mem));
  for (size_t i = 0; i < why->path.n; i++) {
    const struct to_path_piece *p = &why->path.piece[i];
    if (p->history == NULL || p->history->life != why->interval->life || p->state != TO_GO_RUNNABLE)
      continue;
    ns += (uint64_t)(p->until - p->from);
    all += to_crowd_time(&crowd, p->from, p->until);
  }
  to_crowd_fini(&crowd);
  why->runnable = ns == 0 ? 0 : (double)all / (double)ns;
  why->procs = why->timeline.procs;
  return TB_OK;
}

tb_rc to_why_explain(struct to_why *why) {
  const struct to_why_interval *in = why->interval;

  TB_TRY(to_critical_path(&why->timeline, in->life, in->from, in->until, why->mem, &why->path));
  TB_TRY(to_path_sum_new(&why->sum, &why->path, in->life, why->mem));
  TB_TRY(to_related_find(&why->related, &why->timeline, in->life, why->mem));
  return average_runnable(why);
}

void to_why_each_part(const struct to_why *why, to_why_part_fn *each, void *self) {
  const struct to_path_sum *s = &why->sum;

  for (unsigned p = 0; p < TO_PATH_PARTS; p++)
    if (p != TO_PATH_WAITING && s->own.ns[p] > 0) each(self, parts[p].name, "", s->own.ns[p]);
  for (unsigned r = 0; r < TO_REASONS_MAX; r++)
    if (s->own_waiting[r] > 0)
      each(self, parts[TO_PATH_WAITING].name, to_spans_reason(why->spans, r)->display,
           s->own_waiting[r]);
  if (s->behind_total > 0) each(self, "behind", "", s->behind_total);
}

static const struct to_callstack *calls(const struct to_why *why, uint32_t stack) {
  return to_spans_callstack(why->spans, stack);
}

const struct to_frame *to_why_frame(const struct to_why *why, uint32_t stack) {
  return to_callstack_own(calls(why, stack));
}

/* Without a LIFE's stack, the outermost known frame is used. */
struct to_string to_why_entry(const struct to_why *why, const struct to_history *history,
                              uint32_t stack) {
  const struct to_frame *frame = NULL;

  if (history != NULL && history->entry_stack > TO_STACK_OTHER)
    frame = to_callstack_entry(calls(why, history->entry_stack), true);
  if (frame == NULL) frame = to_callstack_entry(calls(why, stack), false);
  return frame != NULL ? frame->function : (struct to_string){ 0 };
}

struct to_string to_why_related_entry(const struct to_why *why,
                                      const struct to_related_goroutine *of) {
  const struct to_history *history = of->history;

  struct to_string name = to_why_entry(why, history, TO_STACK_EMPTY);

  for (size_t i = 0; i < history->n && name.len == 0; i++)
    name = to_why_entry(why, history, history->span[i].stack);
  return name;
}

const char *to_why_piece_state(const struct to_path_piece *piece) {
  return piece->state == TO_GO_NOT_EXIST ? "unknown" : to_go_state_name(piece->state);
}

const char *to_why_piece_reason(const struct to_why *why, const struct to_path_piece *piece) {
  return piece->state == TO_GO_WAITING ? to_spans_reason(why->spans, piece->reason)->display : "";
}

const char *to_why_piece_end(const struct to_why *why, const struct to_path_piece *piece) {
  bool is_wait = piece->state == TO_GO_WAITING && piece->end == TO_PATH_NO_WAKER;

  switch (is_wait ? to_spans_reason(why->spans, piece->reason)->wait_class : TO_WAIT_OTHER) {
  case TO_WAIT_SLEEP: return "ended by a timer";
  case TO_WAIT_NET: return "ended by the network";
  default: return to_path_end_name((enum to_path_end)piece->end);
  }
}
