/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/kinds/convoys.h"

#include <stdio.h>
#include <string.h>

#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/leak.h"
#include "online/spans/stacks/library.h"

bool to__convoy_goes_on(const struct to_queues *queues, const struct to_queue *queue) {
  return (queues->convoys >> queue->reason & 1) != 0 && to_queue_is_convoy(queue);
}

tb_rc to__queue_is_busy(struct to_analyses *a, const struct to_queues *queues, uint32_t stack,
                        bool *out) {
  const struct to_queue *queue = &queues->queue[stack];
  bool is_idle;

  *out = queue->waiting > 0 || queue->longest != 0 || queue->convoys != 0;
  if (!*out) return TB_OK; /* it may be a stack that does not exist yet */
  TB_TRY(to_idle_ask(&a->idle, stack, queue->reason, &is_idle));
  *out = !is_idle;
  return TB_OK;
}

/* Describes a convoy that no chain explains: nothing waits now, or in a circle that is not a suspect yet. lock: TO_LOCK_NONE
 * if the queue is a stack's. */
static tb_rc describe_place(struct to_analyses *a, const struct to_queue *queue,
                            const struct to_callstack *stack, uint32_t lock,
                            struct to_string *out) {
  enum { WORDS_BYTES = 240 };
  const struct to_frame *frame = to_callstack_own(stack);
  const char *reason = to_reason_info((enum to_reason)queue->reason)->display;
  char label[TO_LOCK_LABEL_MAX], *words;
  int n;

  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  if (lock != TO_LOCK_NONE) {
    to_lock_table_label(&a->spans->locks, lock, label);
    n = snprintf(words, WORDS_BYTES, "they wait for %s (%s)", label, reason);
  } else if (frame != NULL) {
    char line[24] = "";
    uint64_t number = to_library_line(frame);
    if (number > 0) snprintf(line, sizeof line, ":%llu", (unsigned long long)number);
    n = snprintf(words, WORDS_BYTES, "they wait at %.160s%s (%s)", frame->function.data, line,
                 reason);
  } else {
    return TB_OK;
  }
  *out = (struct to_string){ words, (size_t)n };
  return TB_OK;
}

/* A lock with a name is known by it in each run, one with an address by where the first goroutine waits. */
static tb_rc describe_lock(struct to_analyses *a, uint32_t lock, uint32_t waits_at,
                           struct to_finding *finding) {
  char label[TO_LOCK_LABEL_MAX], *copy;
  size_t n = to_lock_table_label(&a->spans->locks, lock, label);

  if (strstr(label, "0x") != NULL) {
    finding->stack = to_stack_table_stack(a->stacks, waits_at);
    return TB_OK;
  }
  TB_TRY(tb_arena_copy(&a->report_arena, label, n + 1, &copy));
  finding->cause = (struct to_string){ copy, n };
  return TB_OK;
}

static tb_rc is_found(struct to_analyses *a, const struct to__convoys *c, uint32_t number,
                      bool *out) {
  const struct to_queue *queue = &c->queues->queue[number];

  *out = number > TO_STACK_OTHER && to__convoy_goes_on(c->queues, queue) &&
         a->spans->now - queue->since >= TO__FINDING_NS;
  if (!*out || c->are_locks) return TB_OK;
  TB_TRY(to__queue_is_busy(a, c->queues, number, out));
  *out = *out && !to__leak_is_at(a, number);
  return TB_OK;
}

static tb_rc report_convoy(struct to_analyses *a, const struct to__convoys *c, uint32_t number,
                           const struct to_finding_sink *sink) {
  const struct to_queue *queue = &c->queues->queue[number];
  struct to_finding finding = { .kind = TO_FINDING_CONVOY,
                                .key = (uint64_t)c->are_locks << 32 | number,
                                .since = queue->since,
                                .count = queue->gen_max };
  struct to__queue_chain chain;

  TB_TRY(to__chain_of_queue(a, c->begins, c->reasons, number, c->are_locks, &chain));
  if (chain.is_deadlock) return TB_OK; /* reported as a deadlock */
  if (!c->are_locks) finding.stack = to_stack_table_stack(a->stacks, number);
  finding.goroutine = chain.goroutine;
  finding.words = chain.words;
  if (c->are_locks) TB_TRY(describe_lock(a, number, chain.stack, &finding));
  if (chain.words.len == 0)
    TB_TRY(describe_place(a, queue, finding.stack, c->are_locks ? number : TO_LOCK_NONE,
                          &finding.words));
  sink->finding(sink->self, &finding);
  return TB_OK;
}

tb_rc to__convoy_findings(struct to_analyses *a, const struct to__convoys *c,
                          const struct to_finding_sink *sink) {
  bool found;

  for (uint32_t i = c->queues->first; i != TO_QUEUE_NONE; i = c->queues->queue[i].next) {
    TB_TRY(is_found(a, c, i, &found));
    if (found) TB_TRY(report_convoy(a, c, i, sink));
  }
  return TB_OK;
}
