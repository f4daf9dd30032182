/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes whom wait: waits for locks, conditions and channels by where the goroutine blocked and where it was woken.
 *
 * Waits are counted in the shared sums (spans/sums.h). Queues, how many wait at one stack at once, are counted by the pass over
 * events (spans/queues.h). */
#include <string.h>

#include "analysis/analysis_state.h"

struct to_contention {
  struct to_queues queues;
};

static struct to_contention *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_CONTENTION];
}

enum { STACK_BITS = 28 };

#define REASON(ID) (UINT32_C(1) << TO_REASON_##ID)
/* Workers that wait for work stand in a long queue, too: at a receive, a select or a condition. */
static const uint32_t convoys = REASON(SYNC) | REASON(CHAN_SEND);
static const uint32_t reasons =
    REASON(SYNC) | REASON(SYNC_COND) | REASON(CHAN_SEND) | REASON(CHAN_RECEIVE) | REASON(SELECT);

/* ---- what it says ---- */

enum { WAITS, WAITING, LONGEST, CONVOYS, FIGURES };
static const struct to_field figure[FIGURES] = {
  [WAITS] = { "waits", TO_VALUE_DISTRIBUTION,
              .about = "Waits of goroutines for each other, at locks, conditions and channels.",
              .metric = "trace_contention_seconds" },
  [WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Goroutines that wait so now." },
  [LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                .about = "The most goroutines that waited at one stack at once." },
  [CONVOYS] = { "convoys", TO_VALUE_COUNT,
                .about = "Stacks with a convoy: a queue of three or more for a lock or a send, in "
                         "three generations in a row." },
};

enum { PAIR_STACK, PAIR_WAKER, PAIR_REASON, PAIR_HOW, PAIR_WAITS, PAIR_COLUMNS };
static const struct to_field pair_column[PAIR_COLUMNS] = {
  [PAIR_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the goroutine waits." },
  [PAIR_WAKER] = { "waker_stack", TO_VALUE_STACK,
                   .about = "Where it was woken; empty: by the runtime." },
  [PAIR_REASON] = { "reason", TO_VALUE_TEXT, .about = "What it waits for." },
  [PAIR_HOW] = { "holder", TO_VALUE_TEXT,
                 .about = "inferred: a trace names no lock, so the waker stands for its holder." },
  [PAIR_WAITS] = { "waits", TO_VALUE_DISTRIBUTION },
};
enum { QUEUE_STACK, QUEUE_REASON, QUEUE_LONGEST, QUEUE_WAITING, QUEUE_COLUMNS };
static const struct to_field queue_column[QUEUE_COLUMNS] = {
  [QUEUE_STACK] = { "stack", TO_VALUE_STACK, .about = "Where goroutines wait." },
  [QUEUE_REASON] = { "reason", TO_VALUE_TEXT },
  [QUEUE_LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                      .about = "The most that waited there at once." },
  [QUEUE_WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Those that wait there now." },
};
enum {
  CONVOY_STACK,
  CONVOY_REASON,
  CONVOY_LONGEST,
  CONVOY_SINCE,
  CONVOY_LASTED,
  CONVOY_NOW,
  CONVOY_COLUMNS
};
static const struct to_field convoy_column[CONVOY_COLUMNS] = {
  [CONVOY_STACK] = { "stack", TO_VALUE_STACK, .about = "Where goroutines wait." },
  [CONVOY_REASON] = { "reason", TO_VALUE_TEXT },
  [CONVOY_LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                       .about = "The most that waited there at once." },
  [CONVOY_SINCE] = { "since_ns", TO_VALUE_TIME,
                     .about = "Where the first of its generations began." },
  [CONVOY_LASTED] = { "lasted_ns", TO_VALUE_NS, .about = "Up to the end of its last generation." },
  [CONVOY_NOW] = { "now", TO_VALUE_FLAG, .about = "It goes on." },
};

enum { BY_PAIR, QUEUES, CONVOY_LIST, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_PAIR] = { .name = "by_pair",
                .about = "By where it waits and where it is woken",
                .order_about = "most time first",
                .keys = 4,
                .columns = PAIR_COLUMNS,
                .column = pair_column,
                .order = { { PAIR_WAITS + 1 } } },
  [QUEUES] = { .name = "queues",
               .about = "Stacks where several wait at once",
               .order_about = "longest queue first",
               .keys = 1,
               .columns = QUEUE_COLUMNS,
               .column = queue_column,
               .order = { { QUEUE_LONGEST + 1 }, { QUEUE_WAITING + 1 } },
               .is_list = true },
  [CONVOY_LIST] = { .name = "convoys",
                    .about = "Convoys",
                    .order_about = "those that go on first, then the longest ones",
                    .keys = 1,
                    .columns = CONVOY_COLUMNS,
                    .column = convoy_column,
                    .order = { { CONVOY_NOW + 1 }, { CONVOY_LASTED + 1 } },
                    .is_list = true },
};

/* ---- counting ---- */

static tb_rc contention_init(struct to_analyses *a) {
  struct to_queues *queues = &state(a)->queues;

  TB_TRY(to_queues_init(queues, a->mem, &a->windows, a->stacks));
  queues->reasons = reasons;
  queues->convoys = convoys;
  a->spans->queues = queues;
  return TB_OK;
}

static void contention_fini(struct to_analyses *a) {
  a->spans->queues = NULL;
  to_queues_fini(&state(a)->queues);
}

static tb_rc contention_slot(struct to_analyses *a) {
  return to_queues_slot(&state(a)->queues);
}

/* A Sync is the first event of its generation: the pass has seen all before it, and nothing after it. */
static tb_rc contention_event(struct to_analyses *a, const struct to_generation *gen,
                              const struct to_event *ev) {
  (void)gen;
  return to_queues_generation(&state(a)->queues, ev->time);
}

/* ---- the report ---- */

static struct to_string reason_text(unsigned reason) {
  const char *name = to_reason_info((enum to_reason)reason)->display;
  return (struct to_string){ name, strlen(name) };
}

static tb_rc find_pair(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum,
                       struct to_draft_value **out) {
  static const char inferred[] = "inferred";
  uint64_t key = ((uint64_t)sum->why << STACK_BITS | sum->stack) << STACK_BITS | sum->by_stack;

  if (sum->stack == TO_STACK_OTHER || sum->by_stack == TO_STACK_OTHER)
    return to_draft_other(d, BY_PAIR, out);
  TB_TRY(to_draft_row(d, BY_PAIR, key, out));
  to_draft_stack(&(*out)[PAIR_STACK], to_stack_table_stack(a->stacks, sum->stack));
  to_draft_stack(&(*out)[PAIR_WAKER], to_stack_table_stack(a->stacks, sum->by_stack));
  to_draft_text(&(*out)[PAIR_REASON], reason_text(sum->why));
  to_draft_text(&(*out)[PAIR_HOW], (struct to_string){ inferred, sizeof(inferred) - 1 });
  return TB_OK;
}

static tb_rc report_pairs(struct to_analyses *a, struct to_draft *d) {
  const struct to_span_sum *sum = NULL;
  struct to_draft_value *row;

  while ((sum = to_span_sums_next(&a->sums, d->view, TO_GO_WAITING, sum)) != NULL) {
    if ((reasons >> sum->why & 1) == 0) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, WAITS), sum->series));
    TB_TRY(find_pair(a, d, sum, &row));
    TB_TRY(to_draft_series(d, &row[PAIR_WAITS], sum->series));
  }
  return TB_OK;
}

static int64_t longest(const struct to_draft *d, const struct to_queue *queue) {
  return queue->longest == 0 ? 0 : (int64_t)to_view_sum(d->view, queue->longest).max_ns;
}

static tb_rc add_queue(struct to_analyses *a, struct to_draft *d, uint32_t number) {
  const struct to_queue *queue = &state(a)->queues.queue[number];
  struct to_draft_value *row, *most = to_draft_figure(d, LONGEST);
  int64_t length = longest(d, queue);

  if (length < 2) return TB_OK;
  TB_TRY(to_draft_new_row(d, QUEUES, &row));
  to_draft_stack(&row[QUEUE_STACK], to_stack_table_stack(a->stacks, number));
  to_draft_text(&row[QUEUE_REASON], reason_text(queue->reason));
  to_draft_number(&row[QUEUE_LONGEST], length);
  to_draft_number(&row[QUEUE_WAITING], queue->waiting);
  if (length > most->value.number) to_draft_number(most, length);
  return TB_OK;
}

static tb_rc add_convoy(struct to_analyses *a, struct to_draft *d, uint32_t number) {
  const struct to_queues *queues = &state(a)->queues;
  const struct to_queue *queue = &queues->queue[number];
  const struct to_cell *past = queue->convoys == 0 ? NULL : to_view_cell(d->view, queue->convoys);
  struct to_draft_value *row;

  bool now = (queues->convoys >> queue->reason & 1) != 0 &&
             to_queue_generations(queue) >= TO_CONVOY_GENERATIONS &&
             queue->gen_max >= TO_CONVOY_LENGTH;
  if (past == NULL && !now) return TB_OK;
  to_ns since = now ? queue->since : past->since;
  to_ns lasted = now ? d->view->until - since : (to_ns)past->max_ns;
  TB_TRY(to_draft_new_row(d, CONVOY_LIST, &row));
  to_draft_stack(&row[CONVOY_STACK], to_stack_table_stack(a->stacks, number));
  to_draft_text(&row[CONVOY_REASON], reason_text(queue->reason));
  to_draft_number(&row[CONVOY_LONGEST], longest(d, queue));
  to_draft_number(&row[CONVOY_SINCE], since);
  to_draft_number(&row[CONVOY_LASTED], lasted);
  to_draft_number(&row[CONVOY_NOW], now);
  to_draft_figure(d, CONVOYS)->value.number++;
  return TB_OK;
}

static tb_rc contention_report(struct to_analyses *a, const struct to_view *view,
                               struct to_draft *d) {
  const struct to_queues *queues = &state(a)->queues;
  int64_t waiting = 0;

  (void)view;
  to_draft_number(to_draft_figure(d, LONGEST), 0);
  to_draft_number(to_draft_figure(d, CONVOYS), 0);
  TB_TRY(report_pairs(a, d));
  for (uint32_t i = 0; i < queues->room; i++) {
    waiting += queues->queue[i].waiting;
    if (i == TO_STACK_OTHER) continue; /* no queue: stacks that are not told apart */
    TB_TRY(add_queue(a, d, i));
    TB_TRY(add_convoy(a, d, i));
  }
  to_draft_number(to_draft_figure(d, WAITING), waiting);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_contention = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_contention),
  .events = TO_ANALYSIS_EVENT(SYNC),
  .init = contention_init,
  .fini = contention_fini,
  .event = contention_event,
  .slot = contention_slot,
  .report = contention_report,
};
