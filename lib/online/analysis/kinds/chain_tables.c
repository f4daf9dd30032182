/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/kinds/chain_tables.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 256 }; /* each with a sentence */
#define LONG_NS    TO__FINDING_NS
#define REASON(ID) (UINT32_C(1) << TO_REASON_##ID)
static const uint64_t can_deadlock = REASON(SYNC) | REASON(CHAN_SEND);

const struct to_field to__chain_column[TO__CHAIN_COLUMNS] = {
  [TO__CHAIN_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the goroutine waits." },
  [TO__CHAIN_REASON] = { "reason", TO_VALUE_TEXT, .about = "What it waits for." },
  [TO__CHAIN_WAITING] = { "waiting", TO_VALUE_COUNT,
                          .about = "Goroutines that wait there, with the same one at the end." },
  [TO__CHAIN_AGE] = { "age_ns", TO_VALUE_NS, .about = "How long the first of them has waited." },
  [TO__CHAIN_GOROUTINE] = { "goroutine", TO_VALUE_ID, .about = "The first of them." },
  [TO__CHAIN_LENGTH] = { "length", TO_VALUE_COUNT,
                         .about = "Waits from it to the end of the chain." },
  [TO__CHAIN_HOW] = { "link", TO_VALUE_TEXT,
                      .about = "How the next goroutine is known. exact: it holds the lock. "
                               "inferred: it ended this goroutine's last wait there. guessed: it "
                               "ended another's. Empty: unknown." },
  [TO__CHAIN_END] = { "end", TO_VALUE_TEXT,
                      .about = "What the goroutine at the end does: runs, runnable, system call, "
                               "idle. no waker: it waits, and who will end the wait is unknown. "
                               "gone: the goroutine that ended such waits has ended. cycle." },
  [TO__CHAIN_LAST] = { "last_goroutine", TO_VALUE_ID, .about = "The goroutine at the end." },
  [TO__CHAIN_LAST_ENTRY] = { "last_entry", TO_VALUE_TEXT,
                             .about = "The function that it began with." },
  [TO__CHAIN_LAST_STACK] = { "last_stack", TO_VALUE_STACK,
                             .about = "Where it waits or called the kernel; otherwise its last "
                                      "known place." },
  [TO__CHAIN_WORDS] = { "chain", TO_VALUE_TEXT, .about = "The chain in words." },
};
const struct to_field to__cycle_column[TO__CYCLE_COLUMNS] = {
  [TO__CYCLE_GOROUTINE] = { "goroutine", TO_VALUE_ID,
                            .about = "The goroutine of the circle with the smallest id." },
  [TO__CYCLE_LENGTH] = { "length", TO_VALUE_COUNT, .about = "Goroutines in it." },
  [TO__CYCLE_AGE] = { "age_ns", TO_VALUE_NS, .about = "How long all of them have waited." },
  [TO__CYCLE_SUSPECTED] = { "suspected", TO_VALUE_FLAG,
                            .about = "A deadlock is suspected: they wait for locks or sends, have "
                                     "done so for two whole generations, and nothing outside of "
                                     "the circle is known to end these waits." },
  [TO__CYCLE_STACK] = { "stack", TO_VALUE_STACK, .about = "Where that goroutine waits." },
  [TO__CYCLE_WORDS] = { "chain", TO_VALUE_TEXT, .about = "The circle in words." },
};

void to__generation_begins(struct to__generation_begins *begins, to_ns time) {
  memmove(begins->at + 1, begins->at, (TO__QUIET_LONG) * sizeof *begins->at);
  begins->at[0] = time;
  if (begins->n <= TO__QUIET_LONG) begins->n++;
}

/* Returns the earlier of two moments: the begin of the last n whole generations, and LONG_NS ago. INT64_MIN: there are
 * fewer generations. */
static to_ns since_whole(const struct to_analyses *a, const struct to__generation_begins *begins,
                         unsigned generations) {
  unsigned at = a->generation == NULL ? generations - 1 : generations; /* one is under way */
  to_ns long_ago = a->spans->now - LONG_NS;

  if (at >= begins->n) return INT64_MIN;
  return begins->at[at] < long_ago ? begins->at[at] : long_ago;
}

static struct to_chains_ask ask_for(struct to_analyses *a,
                                    const struct to__generation_begins *begins, uint64_t reasons) {
  return (struct to_chains_ask){ .spans = a->spans,
                                 .gen = a->generation,
                                 .idle = &a->idle,
                                 .reasons = reasons,
                                 .begins = reasons,
                                 .longer_than = LONG_NS,
                                 .quiet_since = since_whole(a, begins, TO__QUIET),
                                 .long_since = since_whole(a, begins, TO__QUIET_LONG) };
}

/* ---- chains ---- */

/* Goroutines that wait at one stack and whose chains end at the same goroutine. */
struct group {
  uint32_t oldest; /* slot */
  uint32_t waiting;
};

struct groups {
  struct to_analyses *a;
  const struct to_chains *chains;
  struct tb_map by_key;
  struct group *group;
  size_t n, room;
};

static tb_rc add_to_group(struct groups *g, struct tb_arena *arena, uint32_t slot) {
  const struct to_chain *chain = &g->chains->of_slot[slot];
  const struct to_life *lives = g->chains->spans->lives;
  uint32_t last = chain->cycle != 0 ? g->chains->cycle[chain->cycle - 1].first : chain->last;
  if (last == slot && chain->cycle == 0) last = 0; /* each is the end of its own chain */
  uint64_t *place;
  bool fresh;

  TB_TRY(tb_map_put(&g->by_key, (uint64_t)chain->stack << 32 | last, &place, &fresh));
  if (fresh) {
    TB_TRY(TB_ARENA_GROW(arena, g->group, g->room, g->n));
    g->group[g->n] = (struct group){ .oldest = slot };
    *place = g->n++;
  }
  struct group *group = &g->group[*place];
  group->waiting++;
  if (lives[slot].since < lives[group->oldest].since) group->oldest = slot;
  return TB_OK;
}

static int by_age(const void *x, const void *y, void *lives) {
  const struct to_life *a = &((const struct to_life *)lives)[((const struct group *)x)->oldest];
  const struct to_life *b = &((const struct to_life *)lives)[((const struct group *)y)->oldest];

  return a->since != b->since ? (a->since < b->since ? -1 : 1) : a->id < b->id ? -1 : a->id > b->id;
}

static struct to_string text_of(const char *name) {
  return (struct to_string){ name, strlen(name) };
}

static tb_rc add_chain(struct groups *g, struct to_draft *d, unsigned table,
                       const struct group *group) {
  const struct to_chain *chain = &g->chains->of_slot[group->oldest];
  const struct to_life *life = &g->a->spans->lives[group->oldest];
  const struct to_life *last = &g->a->spans->lives[chain->last];
  struct to_draft_value *row;
  struct to_string words;
  uint32_t stack;

  TB_TRY(to_draft_new_row(d, table, &row));
  TB_TRY(to_chain_words(g->chains, &g->a->sums, group->oldest, d->arena, &words));
  TB_TRY(to_spans_stack(g->a->spans, g->a->generation, last->stack, &stack));
  to_draft_stack(&row[TO__CHAIN_STACK], to_stack_table_stack(g->a->stacks, chain->stack));
  to_draft_text(&row[TO__CHAIN_REASON],
                text_of(to_spans_reason(g->a->spans, life->reason)->display));
  to_draft_number(&row[TO__CHAIN_WAITING], group->waiting);
  to_draft_number(&row[TO__CHAIN_AGE], to_spans_now(g->a->spans) - life->since);
  to_draft_number(&row[TO__CHAIN_GOROUTINE], life->id);
  to_draft_number(&row[TO__CHAIN_LENGTH], chain->length);
  to_draft_text(&row[TO__CHAIN_HOW], text_of(to_link_name((enum to_link)chain->link)));
  to_draft_text(&row[TO__CHAIN_END], text_of(to_chain_end_name((enum to_chain_end)chain->end)));
  to_draft_number(&row[TO__CHAIN_LAST], last->id);
  to_draft_text(&row[TO__CHAIN_LAST_ENTRY],
                to_span_sums_entry(&g->a->sums, g->a->sums.goroutine[chain->last].entry));
  to_draft_stack(&row[TO__CHAIN_LAST_STACK], to_stack_table_stack(g->a->stacks, stack));
  to_draft_text(&row[TO__CHAIN_WORDS], words);
  return TB_OK;
}

static tb_rc add_groups(struct groups *g, struct to_draft *d, unsigned table) {
  const struct to_spans *s = g->chains->spans;

  for (uint32_t slot = 1; slot < g->chains->slots; slot++) {
    const struct to_chain *chain = &g->chains->of_slot[slot];
    if (chain->length > 0 && s->now - s->lives[slot].since > LONG_NS)
      TB_TRY(add_to_group(g, d->arena, slot));
  }
  if (g->n > 1) qsort_r(g->group, g->n, sizeof *g->group, by_age, s->lives);
  for (size_t i = 0; i < g->n && i < ROWS_MAX; i++) TB_TRY(add_chain(g, d, table, &g->group[i]));
  return TB_OK;
}

static tb_rc add_chains(struct to_analyses *a, struct to_draft *d, const struct to_chains *chains,
                        unsigned table) {
  struct groups groups = { .a = a, .chains = chains };

  if (chains->slots == 0) return TB_OK;
  tb_map_init(&groups.by_key, a->mem, tb_seed());
  tb_rc rc = add_groups(&groups, d, table);
  tb_map_fini(&groups.by_key);
  return rc;
}

/* ---- cycles ---- */

static tb_rc add_cycle(struct to_analyses *a, struct to_draft *d, const struct to_chains *chains,
                       const struct to_cycle *cycle, unsigned table) {
  const struct to_chain *chain = &chains->of_slot[cycle->first];
  struct to_draft_value *row;
  struct to_string words;

  TB_TRY(to_draft_new_row(d, table, &row));
  TB_TRY(to_chain_words(chains, &a->sums, cycle->first, d->arena, &words));
  to_draft_number(&row[TO__CYCLE_GOROUTINE], a->spans->lives[cycle->first].id);
  to_draft_number(&row[TO__CYCLE_LENGTH], cycle->length);
  to_draft_number(&row[TO__CYCLE_AGE], to_spans_now(a->spans) - cycle->newest);
  to_draft_number(&row[TO__CYCLE_SUSPECTED], cycle->is_suspect);
  to_draft_stack(&row[TO__CYCLE_STACK], to_stack_table_stack(a->stacks, chain->stack));
  to_draft_text(&row[TO__CYCLE_WORDS], words);
  return TB_OK;
}

tb_rc to__chain_rows(struct to_analyses *a, struct to_draft *d,
                     const struct to__generation_begins *begins, uint64_t reasons,
                     unsigned chains_table, unsigned cycles_table, unsigned deadlocks_figure) {
  struct to_chains_ask ask = ask_for(a, begins, reasons);
  struct to_chains chains = { 0 };
  int64_t deadlocks = 0;

  TB_TRY(to_chains_find(&ask, d->arena, &chains));
  TB_TRY(add_chains(a, d, &chains, chains_table));
  for (size_t i = 0; i < chains.cycles; i++) {
    TB_TRY(add_cycle(a, d, &chains, &chains.cycle[i], cycles_table));
    deadlocks += chains.cycle[i].is_suspect;
  }
  if (chains.cycles_total > chains.cycles)
    TB_TRY(to_draft_note(d, "More than 64 circles of waits: the rest are listed only in the "
                            "table chains, and not as suspected deadlocks."));
  to_draft_number(to_draft_figure(d, deadlocks_figure), deadlocks);
  return TB_OK;
}

static tb_rc say_deadlock(struct to_analyses *a, const struct to_chains *chains,
                          const struct to_cycle *cycle, const struct to_finding_sink *sink) {
  const struct to_life *first = &a->spans->lives[cycle->first];
  struct to_finding finding = { .kind = TO_FINDING_DEADLOCK,
                                .key = first->life,
                                .since = cycle->newest,
                                .goroutine = first->id,
                                .count = cycle->length };

  finding.stack = to_stack_table_stack(a->stacks, chains->of_slot[cycle->first].stack);
  TB_TRY(to_chain_words(chains, &a->sums, cycle->first, &a->report_arena, &finding.words));
  sink->finding(sink->self, &finding);
  return TB_OK;
}

/* Returns true if the chain leads to a system call that is not idle and that has taken long enough. */
static tb_rc is_stall(struct to_analyses *a, const struct to_chain *chain, bool *out) {
  const struct to_life *last = &a->spans->lives[chain->last];
  bool is_known = chain->link == TO_LINK_EXACT || chain->link == TO_LINK_OWN, is_idle;
  uint32_t stack;

  *out = false;
  if (chain->length == 0 || chain->end != TO_CHAIN_CALL || !is_known ||
      a->spans->now - last->since <= LONG_NS)
    return TB_OK;
  TB_TRY(to_spans_stack(a->spans, a->generation, last->stack, &stack));
  TB_TRY(to_idle_ask(&a->idle, stack, TO_IDLE_CALL, &is_idle));
  *out = !is_idle;
  return TB_OK;
}

/* The program's function that called the kernel. */
static tb_rc find_call(struct to_analyses *a, const struct to_life *g, struct to_string *out) {
  uint32_t stack;

  TB_TRY(to_spans_stack(a->spans, a->generation, g->stack, &stack));
  const struct to_frame *frame = to_callstack_own(to_stack_table_stack(a->stacks, stack));
  *out = frame != NULL ? frame->function : (struct to_string){ "", 0 };
  return TB_OK;
}

/* Reports one finding per call: how many goroutines wait for it, and the longest wait's chain. */
static tb_rc find_stalls(struct to_analyses *a, const struct to_chains *chains,
                         const struct to_finding_sink *sink) {
  const struct to_life *lives = a->spans->lives;
  struct group *behind; /* goroutines that wait for the call, by the slot of its goroutine */
  bool is;

  TB_TRY(tb_arena_alloc(&a->report_arena, chains->slots * sizeof *behind, &behind));
  memset(behind, 0, chains->slots * sizeof *behind);
  for (uint32_t slot = 1; slot < chains->slots; slot++) {
    const struct to_chain *chain = &chains->of_slot[slot];
    TB_TRY(is_stall(a, chain, &is));
    if (!is || (can_deadlock >> lives[slot].reason & 1) == 0 ||
        a->spans->now - lives[slot].since <= LONG_NS)
      continue;
    struct group *group = &behind[chain->last];
    if (group->waiting++ == 0 || lives[slot].since < lives[group->oldest].since)
      group->oldest = slot;
  }
  for (uint32_t slot = 1; slot < chains->slots; slot++) {
    uint32_t oldest = behind[slot].oldest;
    struct to_finding finding = { .kind = TO_FINDING_STALL,
                                  .key = lives[slot].life,
                                  .since = lives[slot].since,
                                  .goroutine = lives[slot].id,
                                  .count = behind[slot].waiting };
    if (finding.count == 0) continue;
    TB_TRY(find_call(a, &lives[slot], &finding.cause));
    finding.stack = to_stack_table_stack(a->stacks, chains->of_slot[oldest].stack);
    TB_TRY(to_chain_words(chains, &a->sums, oldest, &a->report_arena, &finding.words));
    sink->finding(sink->self, &finding);
  }
  return TB_OK;
}

tb_rc to__chain_findings(struct to_analyses *a, const struct to__generation_begins *begins,
                         uint64_t reasons, const struct to_finding_sink *sink) {
  struct to_chains_ask ask = ask_for(a, begins, reasons);
  struct to_chains chains = { 0 };

  ask.begins = can_deadlock;
  TB_TRY(to_chains_find(&ask, &a->report_arena, &chains));
  if (chains.slots == 0) return TB_OK;
  for (size_t i = 0; i < chains.cycles; i++)
    if (chains.cycle[i].is_suspect) TB_TRY(say_deadlock(a, &chains, &chains.cycle[i], sink));
  return find_stalls(a, &chains, sink);
}

/* Slot of the goroutine that has waited longest in this queue; 0: the queue is empty. */
static uint32_t first_in_queue(const struct to_spans *s, uint64_t reasons, uint32_t number,
                               bool is_lock) {
  uint32_t first = 0;

  for (uint32_t slot = 1; slot < s->slots_end; slot++) {
    const struct to_life *g = &s->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING || (reasons >> g->reason & 1) == 0) continue;
    if ((is_lock ? g->lock : g->queue) != number) continue;
    if (first == 0 || g->since < s->lives[first].since) first = slot;
  }
  return first;
}

tb_rc to__chain_of_queue(struct to_analyses *a, const struct to__generation_begins *begins,
                         uint64_t reasons, uint32_t number, bool is_lock,
                         struct to__queue_chain *out) {
  struct to_chains_ask ask = ask_for(a, begins, reasons);
  uint32_t first = first_in_queue(a->spans, reasons, number, is_lock);
  struct to_chains chains = { 0 };

  *out = (struct to__queue_chain){ .goroutine = TO_NONE, .stack = TO_STACK_OTHER };
  if (first == 0) return TB_OK;
  ask.longer_than = -1;
  TB_TRY(to_chains_find(&ask, &a->report_arena, &chains));
  out->goroutine = a->spans->lives[first].id;
  out->stack = a->spans->lives[first].queue;
  if (chains.slots == 0 || chains.of_slot[first].length == 0) return TB_OK;
  uint32_t cycle = chains.of_slot[first].cycle;
  out->is_deadlock = cycle != 0 && chains.cycle[cycle - 1].is_suspect;
  if (cycle != 0 && !out->is_deadlock) return TB_OK; /* a chance circle: its waits still change */
  return to_chain_words(&chains, &a->sums, first, &a->report_arena, &out->words);
}
