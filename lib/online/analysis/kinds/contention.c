/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes whom wait: waits for locks, conditions and channels, by where the goroutine blocked and where it was
 * woken; in a C program also by lock.
 *
 * Waits are counted in the shared sums (online/spans/sums.h), those for known locks also by lock (online/spans/lock_waits.h). Queues,
 * the number of waits at one stack or for one lock, are counted while spans are made (online/spans/queues.h). */
#include <stdio.h>
#include <string.h>

#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/before.h"
#include "online/analysis/kinds/chain_tables.h"
#include "online/analysis/kinds/convoys.h"
#include "online/explain/lock_holders.h"

struct to_contention {
  struct to_queues queues;
  struct to_lock_waits locks;
  struct to_wakers wakers;
  struct to__generation_begins begins;
};

static struct to_contention *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_CONTENTION];
}

enum { STACK_BITS = 28, REASON_BITS = 5 };
_Static_assert(TO_REASONS <= 1 << REASON_BITS, "a reason fits");

#define REASON(ID) (UINT32_C(1) << TO_REASON_##ID)
/* Reasons of convoys. Idle workers, too, form a long queue: at a receive, a select or a condition. */
static const uint32_t convoys = REASON(SYNC) | REASON(CHAN_SEND);
static const uint64_t reasons =
    REASON(SYNC) | REASON(SYNC_COND) | REASON(CHAN_SEND) | REASON(CHAN_RECEIVE) | REASON(SELECT);

enum { WAITS, IDLE, WAITING, LONGEST, CONVOYS, LOCKS, DEADLOCKS, FIGURES };
static const struct to_field figure[FIGURES] = {
  [WAITS] = { "waits", TO_VALUE_DISTRIBUTION,
              .about = "Waits of goroutines for each other, at locks, conditions and channels, "
                       "idle ones left out.",
              .metric = "trace_contention_seconds" },
  [IDLE] = { "idle", TO_VALUE_DISTRIBUTION,
             .about = "Such waits of goroutines that had nothing to do: no row has them." },
  [WAITING] = { "waiting", TO_VALUE_COUNT,
                .about = "Goroutines that wait so now, idle ones left out.",
                .over_time = TO_OVER_LAST },
  [LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                .about = "The most goroutines that waited at one stack at once.",
                .greatest = true },
  [CONVOYS] = { "convoys", TO_VALUE_COUNT,
                .about = "Stacks with a convoy: a queue of three or more for a lock or a send, in "
                         "three generations in a row, that goroutines leave or that is stuck.",
                .over_time = TO_OVER_UNKNOWN },
  [LOCKS] = { "locks", TO_VALUE_COUNT,
              .about = "Locks that goroutines waited for, where the trace names them: a C "
                       "program's does, a Go program's does not.",
              .over_time = TO_OVER_UNKNOWN },
  [DEADLOCKS] = { "deadlocks", TO_VALUE_COUNT,
                  .about = "Suspected deadlocks now: goroutines that wait for each other in a "
                           "circle, and have done so for two whole generations.",
                  .over_time = TO_OVER_LAST },
};

enum { PAIR_STACK, PAIR_WAKER, PAIR_REASON, PAIR_HOW, PAIR_WAITS, PAIR_OBJECT, PAIR_COLUMNS };
static const struct to_field pair_column[PAIR_COLUMNS] = {
  [PAIR_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the goroutine waits." },
  [PAIR_WAKER] = { "waker_stack", TO_VALUE_STACK,
                   .about = "Where it was woken; empty: by the runtime." },
  [PAIR_REASON] = { "reason", TO_VALUE_TEXT, .about = "What it waits for." },
  [PAIR_HOW] = { "holder", TO_VALUE_TEXT,
                 .about = "exact: the waker released the lock. unseen: the lock is known, but not "
                          "what released it. inferred: the trace names no lock, so the waker "
                          "is taken for its holder." },
  [PAIR_WAITS] = { "waits", TO_VALUE_DISTRIBUTION },
  [PAIR_OBJECT] = { "object", TO_VALUE_TEXT,
                    .about = "The lock: its name, or its address. several: see by_holder." },
};
#define AN_OBJECT                                                                                  \
  "object", TO_VALUE_TEXT, .about = "The lock or condition: its name, or its address."
enum { LOCK_OBJECT, LOCK_WAITS, LOCK_LONGEST, LOCK_WAITING, LOCK_COLUMNS };
static const struct to_field lock_column[LOCK_COLUMNS] = {
  [LOCK_OBJECT] = { AN_OBJECT },
  [LOCK_WAITS] = { "waits", TO_VALUE_DISTRIBUTION },
  [LOCK_LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                     .about = "The most that waited for it at once.", .greatest = true },
  [LOCK_WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Those that wait for it now.",
                     .over_time = TO_OVER_LAST },
};
enum {
  HOLDER_OBJECT,
  HOLDER_ENTRY,
  HOLDER_REASON,
  HOLDER_STACK,
  HOLDER_UNLOCK,
  HOLDER_WAITS,
  HOLDER_COLUMNS
};
static const struct to_field holder_column[HOLDER_COLUMNS] = {
  [HOLDER_OBJECT] = { AN_OBJECT },
  [HOLDER_ENTRY] = { "holder", TO_VALUE_TEXT,
                     .about = "The goroutine or thread that held and released it, by the "
                              "function that it began with; empty: not seen." },
  [HOLDER_REASON] = { "reason", TO_VALUE_TEXT, .about = "What the waiting goroutine waits for." },
  [HOLDER_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the waiting goroutine waits." },
  [HOLDER_UNLOCK] = { "holder_stack", TO_VALUE_STACK, .about = "Where the holder released it." },
  [HOLDER_WAITS] = { "waits", TO_VALUE_DISTRIBUTION },
};
enum {
  HELD_OBJECT,
  HELD_WAITING,
  HELD_AGE,
  HELD_THREAD,
  HELD_GOROUTINE,
  HELD_ENTRY,
  HELD_STATE,
  HELD_STACK,
  HELD_COLUMNS
};
static const struct to_field held_column[HELD_COLUMNS] = {
  [HELD_OBJECT] = { AN_OBJECT },
  [HELD_WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Those that wait for it." },
  [HELD_AGE] = { "age_ns", TO_VALUE_NS, .about = "How long the first of them has waited." },
  [HELD_THREAD] = { "thread", TO_VALUE_ID,
                    .about = "The thread that held it when the last of them began to wait." },
  [HELD_GOROUTINE] = { "goroutine", TO_VALUE_ID, .about = "The goroutine on that thread." },
  [HELD_ENTRY] = { "holder", TO_VALUE_TEXT, .about = "The function that it began with." },
  [HELD_STATE] = { "state", TO_VALUE_TEXT, .about = "Its state now." },
  [HELD_STACK] = { "holder_stack", TO_VALUE_STACK,
                   .about = "Where it waits itself, or called the kernel." },
};
enum { QUEUE_STACK, QUEUE_REASON, QUEUE_LONGEST, QUEUE_WAITING, QUEUE_COLUMNS };
static const struct to_field queue_column[QUEUE_COLUMNS] = {
  [QUEUE_STACK] = { "stack", TO_VALUE_STACK, .about = "Where goroutines wait." },
  [QUEUE_REASON] = { "reason", TO_VALUE_TEXT },
  [QUEUE_LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                      .about = "The most that waited there at once.",
                      .over_time = TO_OVER_GREATEST },
  [QUEUE_WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Those that wait there now.",
                      .over_time = TO_OVER_LAST },
};
enum {
  CONVOY_STACK,
  CONVOY_REASON,
  CONVOY_LONGEST,
  CONVOY_SINCE,
  CONVOY_LASTED,
  CONVOY_NOW,
  CONVOY_OBJECT,
  CONVOY_COLUMNS
};
static const struct to_field convoy_column[CONVOY_COLUMNS] = {
  [CONVOY_STACK] = { "stack", TO_VALUE_STACK,
                     .about = "Where goroutines wait; none: they wait for one lock." },
  [CONVOY_REASON] = { "reason", TO_VALUE_TEXT },
  [CONVOY_LONGEST] = { "longest_queue", TO_VALUE_COUNT,
                       .about = "The most that waited there at once.",
                       .over_time = TO_OVER_GREATEST },
  [CONVOY_SINCE] = { "since_ns", TO_VALUE_TIME,
                     .about = "Where the first of its generations began." },
  [CONVOY_LASTED] = { "lasted_ns", TO_VALUE_NS, .about = "Up to the end of its last generation." },
  [CONVOY_NOW] = { "now", TO_VALUE_FLAG, .about = "It goes on." },
  [CONVOY_OBJECT] = { "object", TO_VALUE_TEXT, .about = "The lock that they wait for." },
};

enum { BY_PAIR, QUEUES, CONVOY_LIST, BY_LOCK, BY_HOLDER, HELD, CHAINS, CYCLES, TABLES };
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
  [BY_LOCK] = { .name = "by_lock",
                .about = "By lock",
                .order_about = "most time first",
                .keys = 1,
                .columns = LOCK_COLUMNS,
                .column = lock_column,
                .order = { { LOCK_WAITS + 1 }, { LOCK_WAITING + 1 } } },
  [BY_HOLDER] = { .name = "by_holder",
                  .about = "By lock and by what held it",
                  .order_about = "most time first",
                  .keys = 5,
                  .columns = HOLDER_COLUMNS,
                  .column = holder_column,
                  .order = { { HOLDER_WAITS + 1 } } },
  [HELD] = { .name = "held",
             .about = "Locks that are waited for now",
             .order_about = "longest wait first",
             .keys = 1,
             .columns = HELD_COLUMNS,
             .column = held_column,
             .order = { { HELD_AGE + 1 }, { HELD_WAITING + 1 } },
             .is_list = true,
             .is_now = true },
  [CHAINS] = TO__CHAINS_TABLE,
  [CYCLES] = TO__CYCLES_TABLE,
};

/* ---- counting ---- */

static tb_rc contention_init(struct to_analyses *a) {
  struct to_queues *queues = &state(a)->queues;
  struct to_lock_waits *locks = &state(a)->locks;

  TB_TRY(to_queues_init(queues, a->mem, &a->windows, a->stacks));
  queues->reasons = reasons;
  queues->convoys = convoys;
  a->spans->queues = queues;
  TB_TRY(to_lock_waits_init(locks, a->mem, &a->windows, a->stacks, &a->sums));
  locks->reasons = locks->queues.reasons = reasons;
  locks->queues.convoys = convoys;
  a->spans->lock_waits = locks;
  to_wakers_init(&state(a)->wakers, a->mem);
  a->spans->wakers = &state(a)->wakers;
  return TB_OK;
}

static void contention_fini(struct to_analyses *a) {
  a->spans->queues = NULL;
  a->spans->lock_waits = NULL;
  a->spans->wakers = NULL;
  to_queues_fini(&state(a)->queues);
  to_lock_waits_fini(&state(a)->locks);
  to_wakers_fini(&state(a)->wakers);
}

static void contention_epoch(struct to_analyses *a) {
  state(a)->begins.n = 0;
}

static tb_rc contention_slot(struct to_analyses *a) {
  TB_TRY(to_queues_slot(&state(a)->locks.queues));
  return to_queues_slot(&state(a)->queues);
}

/* A Sync is the first event of its generation: the spans have seen all earlier events, and no later one. */
static tb_rc contention_event(struct to_analyses *a, const struct to_generation *gen,
                              const struct to_event *ev) {
  (void)gen;
  to__generation_begins(&state(a)->begins, ev->time);
  TB_TRY(to_queues_generation(&state(a)->locks.queues, ev->time));
  return to_queues_generation(&state(a)->queues, ev->time);
}

static int64_t longest(const struct to_draft *d, const struct to_queue *queue) {
  return queue->longest == 0 ? 0 : (int64_t)to_view_sum(d->view, queue->longest).max_ns;
}

static struct to_string reason_text(unsigned reason) {
  const char *name = to_reason_info((enum to_reason)reason)->display;
  return (struct to_string){ name, strlen(name) };
}

/* How the holder of a lock is known. */
enum how { INFERRED, EXACT, UNSEEN };

static struct to_string how_text(enum how how) {
  static const char *const words[] = { "inferred", "exact", "unseen" };
  return (struct to_string){ words[how], strlen(words[how]) };
}

static tb_rc find_pair(struct to_analyses *a, struct to_draft *d, enum how how, unsigned why,
                       uint32_t stack, uint32_t by_stack, struct to_draft_value **out) {
  uint64_t key =
      (((uint64_t)how << REASON_BITS | why) << STACK_BITS | stack) << STACK_BITS | by_stack;

  if (stack == TO_STACK_OTHER || by_stack == TO_STACK_OTHER) return to_draft_other(d, BY_PAIR, out);
  TB_TRY(to_draft_row(d, BY_PAIR, key, out));
  to_draft_stack(&(*out)[PAIR_STACK], to_stack_table_stack(a->stacks, stack));
  to_draft_stack(&(*out)[PAIR_WAKER], to_stack_table_stack(a->stacks, by_stack));
  to_draft_text(&(*out)[PAIR_REASON], reason_text(why));
  to_draft_text(&(*out)[PAIR_HOW], how_text(how));
  return TB_OK;
}

static tb_rc report_pairs(struct to_analyses *a, struct to_draft *d) {
  const struct to_span_sum *sum = NULL;
  struct to_draft_value *row;

  while ((sum = to_span_sums_next(&a->sums, d->view, TO_GO_WAITING, sum)) != NULL) {
    if ((reasons >> sum->why & 1) == 0) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, sum->idle ? IDLE : WAITS), sum->series));
    if (sum->idle) continue;
    if (to_lock_waits_has_pair(&state(a)->locks, sum->why, sum->stack, sum->by_stack)) continue;
    TB_TRY(find_pair(a, d, INFERRED, sum->why, sum->stack, sum->by_stack, &row));
    TB_TRY(to_draft_series(d, &row[PAIR_WAITS], sum->series));
  }
  return TB_OK;
}

/* ---- locks ---- */

static tb_rc set_label(const struct to_analyses *a, struct to_draft *d, uint32_t lock,
                       struct to_draft_value *out) {
  char text[TO_LOCK_LABEL_MAX], *copy;
  size_t n = to_lock_table_label(&a->spans->locks, lock, text);

  TB_TRY(tb_arena_copy(d->arena, text, n + 1, &copy));
  to_draft_text(out, (struct to_string){ copy, n });
  return TB_OK;
}

/* Labels a row that may sum several locks. */
static tb_rc label_one_more(const struct to_analyses *a, struct to_draft *d, uint32_t lock,
                            struct to_draft_value *out) {
  static const char several[] = "several";
  char text[TO_LOCK_LABEL_MAX];

  if (out->value.text.len == 0) return set_label(a, d, lock, out);
  size_t n = to_lock_table_label(&a->spans->locks, lock, text);
  if (n != out->value.text.len || memcmp(text, out->value.text.data, n) != 0)
    to_draft_text(out, (struct to_string){ several, sizeof(several) - 1 });
  return TB_OK;
}

static enum how how_of(const struct to_lock_sum *sum) {
  if (sum->lock == TO_LOCK_NONE) return INFERRED;
  bool was_seen = sum->by_entry != TO_ENTRY_UNKNOWN || sum->by_stack != TO_STACK_EMPTY;
  return was_seen ? EXACT : UNSEEN;
}

static tb_rc add_lock(struct to_analyses *a, struct to_draft *d, const struct to_lock_sum *sum) {
  const struct to_queues *queues = &state(a)->locks.queues;
  const struct to_queue *queue = sum->lock < queues->room ? &queues->queue[sum->lock] : NULL;
  struct to_draft_value *row;

  if (sum->lock == TO_LOCK_OTHER) {
    TB_TRY(to_draft_other(d, BY_LOCK, &row));
  } else {
    TB_TRY(to_draft_row(d, BY_LOCK, sum->lock, &row));
    TB_TRY(set_label(a, d, sum->lock, &row[LOCK_OBJECT]));
    bool is_queue = queue != NULL;
    to_draft_number(&row[LOCK_LONGEST], is_queue ? longest(d, queue) : 0);
    to_draft_number(&row[LOCK_WAITING], is_queue ? queue->waiting : 0);
  }
  return to_draft_series(d, &row[LOCK_WAITS], sum->series);
}

static tb_rc add_holder(struct to_analyses *a, struct to_draft *d, const struct to_lock_sum *sum) {
  const struct to_lock_waits *locks = &state(a)->locks;
  bool is_other = sum->lock == TO_LOCK_OTHER || sum->stack == TO_STACK_OTHER ||
                  sum->by_stack == TO_STACK_OTHER || sum->by_entry == TO_ENTRY_OTHER;
  struct to_draft_value *row;

  if (is_other) {
    TB_TRY(to_draft_other(d, BY_HOLDER, &row));
  } else {
    TB_TRY(to_draft_row(d, BY_HOLDER, (uint64_t)(sum - locks->sum), &row));
    TB_TRY(set_label(a, d, sum->lock, &row[HOLDER_OBJECT]));
    to_draft_text(&row[HOLDER_ENTRY], to_span_sums_entry(&a->sums, sum->by_entry));
    to_draft_text(&row[HOLDER_REASON], reason_text(sum->why));
    to_draft_stack(&row[HOLDER_STACK], to_stack_table_stack(a->stacks, sum->stack));
    to_draft_stack(&row[HOLDER_UNLOCK], to_stack_table_stack(a->stacks, sum->by_stack));
  }
  return to_draft_series(d, &row[HOLDER_WAITS], sum->series);
}

/* Idle waits are in no pair. */
static tb_rc add_pair_of_lock(struct to_analyses *a, struct to_draft *d,
                              const struct to_lock_sum *sum) {
  struct to_draft_value *row;
  bool is_idle;

  TB_TRY(to_idle_ask(&a->idle, sum->stack, sum->why, &is_idle));
  if (is_idle) return TB_OK;
  TB_TRY(find_pair(a, d, how_of(sum), sum->why, sum->stack, sum->by_stack, &row));
  TB_TRY(to_draft_series(d, &row[PAIR_WAITS], sum->series));
  return sum->lock == TO_LOCK_NONE ? TB_OK : label_one_more(a, d, sum->lock, &row[PAIR_OBJECT]);
}

static tb_rc report_locks(struct to_analyses *a, struct to_draft *d) {
  const struct to_lock_sum *sum = NULL;

  while ((sum = to_lock_waits_next(&state(a)->locks, d->view, sum)) != NULL) {
    if (sum->lock == TO_LOCK_NONE &&
        !to_lock_waits_has_pair(&state(a)->locks, sum->why, sum->stack, sum->by_stack))
      continue; /* counted in the shared sums */
    TB_TRY(add_pair_of_lock(a, d, sum));
    if (sum->lock == TO_LOCK_NONE) continue;
    TB_TRY(add_lock(a, d, sum));
    TB_TRY(add_holder(a, d, sum));
  }
  to_draft_number(to_draft_figure(d, LOCKS), (int64_t)d->table[BY_LOCK].rows);
  return TB_OK;
}

static tb_rc add_held(struct to_analyses *a, struct to_draft *d, const struct to_held_lock *held) {
  to_ns now = to_spans_now(a->spans);
  struct to_draft_value *row;
  uint32_t stack;

  TB_TRY(to_draft_new_row(d, HELD, &row));
  TB_TRY(set_label(a, d, held->lock, &row[HELD_OBJECT]));
  to_draft_number(&row[HELD_WAITING], held->waiting);
  to_draft_number(&row[HELD_AGE], now > held->since ? now - held->since : 0);
  if (held->holder != TO_NONE) to_draft_number(&row[HELD_THREAD], held->holder);
  if (!held->is_found) return TB_OK;
  const char *state_name = to_go_state_name((enum to_go_state)held->state);
  to_draft_number(&row[HELD_GOROUTINE], held->goroutine);
  to_draft_text(&row[HELD_ENTRY],
                to_span_sums_entry(&a->sums, a->sums.goroutine[held->slot].entry));
  to_draft_text(&row[HELD_STATE], (struct to_string){ state_name, strlen(state_name) });
  if (held->state == TO_GO_RUNNING) return TB_OK; /* it is no longer at its last known stack */
  TB_TRY(to_spans_stack(a->spans, a->generation, a->spans->lives[held->slot].stack, &stack));
  to_draft_stack(&row[HELD_STACK], to_stack_table_stack(a->stacks, stack));
  return TB_OK;
}

static tb_rc report_held(struct to_analyses *a, struct to_draft *d) {
  const struct to_held_lock *held;
  size_t n;

  TB_TRY(to_lock_holders(a->spans, d->arena, &held, &n));
  for (size_t i = 0; i < n; i++) TB_TRY(add_held(a, d, &held[i]));
  return TB_OK;
}

static tb_rc note_missed(const struct to_analyses *a, struct to_draft *d) {
  enum { SENTENCE_MAX = 160 };
  char text[SENTENCE_MAX], *copy;

  if (a->spans->locks.missed == 0) return TB_OK;
  int n = snprintf(text, sizeof text,
                   "%llu waits since the stream began name no lock: more locks were waited for "
                   "in one generation than the agent can name.",
                   (unsigned long long)a->spans->locks.missed);
  TB_TRY(tb_arena_copy(d->arena, text, (size_t)n + 1, &copy));
  return to_draft_note(d, copy);
}

/* ---- queues ---- */

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

/* number: of a stack, or of a lock if queues are those of locks */
static tb_rc add_convoy(struct to_analyses *a, struct to_draft *d, const struct to_queues *queues,
                        uint32_t number) {
  const struct to_queue *queue = &queues->queue[number];
  const struct to_count *past = queue->convoys == 0 ? NULL : to_view_cell(d->view, queue->convoys);
  struct to_draft_value *row;

  bool now = to__convoy_goes_on(queues, queue);
  if (past == NULL && !now) return TB_OK;
  to_ns since = now ? queue->since : past->since;
  to_ns lasted = now ? d->view->until - since : (to_ns)past->max_ns;
  TB_TRY(to_draft_new_row(d, CONVOY_LIST, &row));
  bool is_lock = queues == &state(a)->locks.queues;
  to_draft_stack(&row[CONVOY_STACK], is_lock ? NULL : to_stack_table_stack(a->stacks, number));
  if (is_lock) TB_TRY(set_label(a, d, number, &row[CONVOY_OBJECT]));
  to_draft_text(&row[CONVOY_REASON], reason_text(queue->reason));
  to_draft_number(&row[CONVOY_LONGEST], longest(d, queue));
  to_draft_number(&row[CONVOY_SINCE], since);
  to_draft_number(&row[CONVOY_LASTED], lasted);
  to_draft_number(&row[CONVOY_NOW], now);
  if (!is_lock) to_draft_figure(d, CONVOYS)->value.number++;
  return TB_OK;
}

static tb_rc report_queues(struct to_analyses *a, struct to_draft *d) {
  const struct to_queues *queues = &state(a)->queues;
  int64_t waiting = 0;
  bool is_busy;

  to_draft_number(to_draft_figure(d, LONGEST), 0);
  to_draft_number(to_draft_figure(d, CONVOYS), 0);
  for (uint32_t i = 0; i < queues->room; i++) {
    TB_TRY(to__queue_is_busy(a, queues, i, &is_busy));
    if (!is_busy) continue;
    waiting += queues->queue[i].waiting;
    if (i == TO_STACK_OTHER) continue; /* sum of many stacks, not a queue */
    TB_TRY(add_queue(a, d, i));
    TB_TRY(add_convoy(a, d, queues, i));
  }
  TB_TRY(to__before_queues(a, d, reasons, QUEUES, LONGEST, &waiting));
  to_draft_number(to_draft_figure(d, WAITING), waiting);
  return TB_OK;
}

static tb_rc contention_report(struct to_analyses *a, const struct to_view *view,
                               struct to_draft *d) {
  const struct to_queues *of_locks = &state(a)->locks.queues;

  (void)view;
  TB_TRY(report_pairs(a, d));
  TB_TRY(report_queues(a, d));
  TB_TRY(report_locks(a, d));
  for (uint32_t i = TO_LOCK_OTHER + 1; i < of_locks->room; i++)
    TB_TRY(add_convoy(a, d, of_locks, i));
  TB_TRY(report_held(a, d));
  TB_TRY(to__chain_rows(a, d, &state(a)->begins, reasons, CHAINS, CYCLES, DEADLOCKS));
  return note_missed(a, d);
}

static tb_rc contention_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  TB_TRY(to__chain_findings(a, &state(a)->begins, reasons, sink));
  /* Where locks are known, a lock's queue also names the lock; stacks' queues would repeat it. */
  bool knows_locks = a->spans->locks.n > 0;
  const struct to__convoys ask = { .queues =
                                       knows_locks ? &state(a)->locks.queues : &state(a)->queues,
                                   .are_locks = knows_locks,
                                   .reasons = reasons,
                                   .begins = &state(a)->begins };
  TB_TRY(to__convoy_findings(a, &ask, sink));
  return to__before_convoys(a, sink);
}

const struct to_analysis_ops to__analysis_contention = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .thins = true,
  .state_bytes = sizeof(struct to_contention),
  .events = TO_ANALYSIS_EVENT(SYNC),
  .init = contention_init,
  .fini = contention_fini,
  .event = contention_event,
  .slot = contention_slot,
  .mark = contention_slot,
  .epoch = contention_epoch,
  .report = contention_report,
  .findings = contention_findings,
};
