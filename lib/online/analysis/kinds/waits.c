/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/kinds/waits.h"

#include "online/event/top_rows.h"

tb_rc to__waits_entry(const struct to_analyses *a, struct to_draft *d, unsigned table,
                      uint32_t entry, struct to_draft_value **out) {
  if (entry == TO_ENTRY_OTHER)
    TB_TRY(to_draft_other(d, table, out));
  else
    TB_TRY(to_draft_row(d, table, entry, out));
  to_draft_text(&(*out)[0], to_span_sums_entry(&a->sums, entry));
  return TB_OK;
}

static void fill_row(const struct to_analyses *a, const struct to_long_span *wait,
                     struct to_string (*why)(const struct to_analyses *a,
                                             const struct to_span_sum *sum),
                     struct to_draft_value *row) {
  const struct to_span_sum *sum = &a->sums.sum[wait->sum];

  to_draft_number(&row[TO_LONG_GOROUTINE], wait->goroutine);
  to_draft_number(&row[TO_LONG_BEGIN], wait->from);
  to_draft_number(&row[TO_LONG_LENGTH], wait->until - wait->from);
  to_draft_text(&row[TO_LONG_WHY], why(a, sum));
  to_draft_stack(&row[TO_LONG_STACK], to_stack_table_stack(a->stacks, sum->stack));
  if (!to_sum_has_waker(sum->state, sum->why)) return;
  if (wait->waker != TO_NONE) to_draft_number(&row[TO_LONG_WAKER], wait->waker);
  to_draft_stack(&row[TO_LONG_WAKER_STACK], to_stack_table_stack(a->stacks, sum->by_stack));
}

/* Rows after the first TO_LONGEST may be incomplete. */
tb_rc to__waits_longest(const struct to_analyses *a, struct to_draft *d, unsigned table,
                        const struct to_longest *longest,
                        struct to_string (*why)(const struct to_analyses *a,
                                                const struct to_span_sum *sum)) {
  const struct to_long_span *wait;
  struct to_draft_value *row;
  size_t n;

  TB_TRY(to_longest_in(longest, d->view, a->report.window, d->arena, &wait, &n));
  for (size_t i = 0; i < n; i++) {
    TB_TRY(to_draft_new_row(d, table, &row));
    fill_row(a, &wait[i], why, row);
  }
  return TB_OK;
}

/* Room for candidates; when it is full, the TO_WAITS_LISTED first ones stay. */
enum { ROOM = 2 * TO_WAITS_LISTED };

static bool is_before(const void *waits, uint32_t a, uint32_t b) {
  const struct to_wait_now *x = (const struct to_wait_now *)waits + a;
  const struct to_wait_now *y = (const struct to_wait_now *)waits + b;

  if (x->idle != y->idle) return y->idle;
  return x->since != y->since ? x->since < y->since : x->goroutine < y->goroutine;
}

static void keep_first(struct to_waits_now *w) {
  struct to_wait_now *kept = w->spare;

  for (size_t i = 0; i < w->n; i++) w->rank[i] = (uint32_t)i;
  to_top_rows(w->rank, w->n, TO_WAITS_LISTED, is_before, w->wait);
  for (size_t i = 0; i < TO_WAITS_LISTED; i++) kept[i] = w->wait[w->rank[i]];
  w->spare = w->wait;
  w->wait = kept;
  w->n = TO_WAITS_LISTED;
}

tb_rc to__waits_now_begin(struct to_waits_now *w, struct to_draft *d) {
  *w = (struct to_waits_now){ .n = 0 };
  TB_TRY(tb_arena_alloc(d->arena, ROOM * sizeof(*w->wait), &w->wait));
  TB_TRY(tb_arena_alloc(d->arena, ROOM * sizeof(*w->spare), &w->spare));
  return tb_arena_alloc(d->arena, ROOM * sizeof(*w->rank), &w->rank);
}

void to__waits_now_note(struct to_waits_now *w, const struct to_wait_now *wait) {
  if (w->n == ROOM) keep_first(w);
  w->wait[w->n++] = *wait;
}

void to__waits_now_end(struct to_waits_now *w) {
  if (w->n > TO_WAITS_LISTED) keep_first(w);
}

tb_rc to__waits_now_row(struct to_analyses *a, struct to_draft *d, unsigned table,
                        const struct to_wait_now *wait, struct to_string why,
                        struct to_draft_value **out, const struct to_callstack **out_stack) {
  enum { GOROUTINE, AGE, WHY };
  to_ns now = to_spans_now(a->spans);
  uint32_t stack;

  TB_TRY(to_spans_stack(a->spans, a->generation, wait->stack, &stack));
  *out_stack = to_stack_table_stack(a->stacks, stack);
  TB_TRY(to_draft_new_row(d, table, out));
  to_draft_number(&(*out)[GOROUTINE], wait->goroutine);
  to_draft_number(&(*out)[AGE], now > wait->since ? now - wait->since : 0);
  to_draft_text(&(*out)[WHY], why);
  return TB_OK;
}
