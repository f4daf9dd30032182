/* SPDX-License-Identifier: Apache-2.0 */
/* Time in system calls, by stack.
 *
 * A goroutine in a call sits on one thread until the call ends, so open calls are kept by thread: a
 * lookup is one multiplication and, as a rule, one cache line. A call lost its P if it ends with
 * GoSyscallEndBlocked; before that we know it from the ProcSteal that names its thread or from the
 * ProcStop on it. It is counted where it ends, with the stack it began with. The status that each
 * generation repeats for a call that goes on changes nothing; the status of a call whose begin was not seen
 * opens one that is a lower bound.
 *
 * About 15 ns a call (begin and end), 1 ns for a P's stop; 48 bytes a thread, 80 a stack and tally. */
#include <string.h>

#include "analysis/analysis_state.h"
#include "analysis/top_rows.h"

enum { PLACES_MIN = 64, PLACES_MAX = 1 << 17 };

static tb_rc syscall_init(struct to_analyses *a) {
  struct to_syscall *s = &a->syscall;

  s->multiplier = tb_seed() | 1;
  s->calls_hist = to_windows_hist(&a->windows);
  s->blocked_hist = to_windows_hist(&a->windows);
  TB_TRY(to_windows_series(&a->windows, &s->born));
  return to_windows_series(&a->windows, &s->died);
}

static void syscall_fini(struct to_analyses *a) {
  struct to_syscall *s = &a->syscall;

  tb_mem_give(a->mem, s->call, s->places * sizeof(*s->call));
  tb_mem_give(a->mem, s->row_of, s->row_of_len * sizeof(*s->row_of));
}

/* The thread's place, or the free one where it would go; NULL only while there is no table. */
static struct to_call *find_place(const struct to_syscall *s, int64_t m) {
  if (s->places == 0) return NULL;
  uint64_t hash = (uint64_t)m * s->multiplier;
  size_t i = (size_t)(hash >> 32) & (s->places - 1);

  while (s->call[i].m != m && s->call[i].m != TO_NONE) i = (i + 1) & (s->places - 1);
  return &s->call[i];
}

static struct to_call *find_open(struct to_syscall *s, int64_t m) {
  struct to_call *call = s->last;

  if (call == NULL || call->m != m) call = find_place(s, m);
  if (call == NULL || call->m != m || !call->open) return NULL;
  s->last = call;
  return call;
}

/* Another table, with room and without the threads whose last call has ended. */
static tb_rc rebuild(struct to_syscall *s, struct tb_mem *mem) {
  struct to_syscall fresh = *s;

  fresh.places = PLACES_MIN;
  while (s->open >= fresh.places / 4) fresh.places *= 2;
  if (fresh.places > PLACES_MAX) return TB_BUDGET;
  TB_TRY(tb_mem_take(mem, fresh.places * sizeof(*s->call), &fresh.call));
  fresh.threads = 0;
  fresh.last = NULL;
  for (size_t i = 0; i < fresh.places; i++) fresh.call[i].m = TO_NONE;
  for (size_t i = 0; i < s->places; i++) {
    if (s->call[i].m == TO_NONE || !s->call[i].open) continue;
    *find_place(&fresh, s->call[i].m) = s->call[i];
    fresh.threads++;
  }
  tb_mem_give(mem, s->call, s->places * sizeof(*s->call));
  *s = fresh;
  return TB_OK;
}

static tb_rc take_place(struct to_syscall *s, struct tb_mem *mem, int64_t m, struct to_call **out) {
  struct to_call *call = s->last;

  if (call != NULL && call->m == m) {
    *out = call;
    return TB_OK;
  }
  call = find_place(s, m);
  if (call == NULL || (call->m == TO_NONE && s->threads >= s->places / 2)) {
    TB_TRY(rebuild(s, mem));
    call = find_place(s, m);
  }
  if (call->m == TO_NONE) {
    *call = (struct to_call){ .m = m };
    s->threads++;
  }
  *out = call;
  return TB_OK;
}

/* The pair of series of a stack. */
static tb_rc find_row(struct to_analyses *a, uint32_t stack, uint32_t *out_row) {
  struct to_syscall *s = &a->syscall;

  if (stack >= s->row_of_len) {
    size_t len = s->row_of_len == 0 ? 64 : s->row_of_len * 2;
    while (len <= stack) len *= 2;
    void *block = s->row_of;
    TB_TRY(tb_mem_resize(a->mem, &block, s->row_of_len * sizeof(*s->row_of),
                         len * sizeof(*s->row_of)));
    s->row_of = block;
    memset(s->row_of + s->row_of_len, 0, (len - s->row_of_len) * sizeof(*s->row_of));
    s->row_of_len = len;
  }
  if (s->row_of[stack] == 0) {
    uint32_t calls, blocked;
    TB_TRY(to_windows_series(&a->windows, &calls));
    TB_TRY(to_windows_series(&a->windows, &blocked)); /* calls + 1 */
    s->row_of[stack] = calls;
  }
  *out_row = s->row_of[stack];
  return TB_OK;
}

/* Field by field: a struct built on the stack and copied in wide words costs three times as much. */
static tb_rc begin_call(struct to_analyses *a, const struct to_generation *gen, int64_t m,
                        int64_t g, to_ns begin, uint64_t stack_id) {
  struct to_syscall *s = &a->syscall;
  struct to_call *call;
  uint32_t stack, row;

  if (m == TO_NONE) return TB_OK; /* no thread, no system call */
  TB_TRY(to_stack_table_index(&a->stacks, gen, stack_id, &stack));
  TB_TRY(find_row(a, stack, &row));
  TB_TRY(take_place(s, a->mem, m, &call));
  s->open += !call->open;
  call->g = g;
  call->begin = begin;
  call->row = row;
  call->stack = stack;
  call->open = true;
  call->lost_proc = false;
  call->lower_bound = false;
  call->reported = false;
  s->last = call;
  return TB_OK;
}

/* Out of line: it happens to few calls. */
static __attribute__((noinline)) void report(struct to_analyses *a, const struct to_call *call,
                                             enum to_watched_event what, to_ns end, bool blocked) {
  struct to_watched span = { .what = what,
                             .begin = call->begin,
                             .end = end,
                             .goroutine = call->g,
                             .thread = call->m,
                             .blocked = blocked,
                             .lower_bound = call->lower_bound,
                             .reported = call->reported,
                             .stack = to_stack_table_stack(&a->stacks, call->stack) };

  a->watch.span(a->watch.self, &span);
}

static tb_rc end_call(struct to_analyses *a, int64_t m, to_ns end, bool blocked) {
  struct to_call *call = find_open(&a->syscall, m);

  if (call == NULL) return TB_OK; /* an epoch began in its middle */
  call->open = false;
  a->syscall.open--;
  if (a->watch.span != NULL && (blocked || end - call->begin >= a->watch.syscall_ns))
    report(a, call, TO_SYSCALL_ENDED, end, blocked);

  struct to_windows *w = &a->windows;
  TB_TRY(to_windows_record(w, a->syscall.calls_hist, call->begin, end));
  to_windows_add(w, call->row, call->begin, end, 0, call->lower_bound);
  if (!blocked) return TB_OK;
  TB_TRY(to_windows_record(w, a->syscall.blocked_hist, call->begin, end));
  to_windows_add(w, call->row + 1, call->begin, end, 0, call->lower_bound);
  return TB_OK;
}

static tb_rc take_status(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0], m = (int64_t)ev->args[1];
  uint64_t stack = ev->type == TW_EV_GO_STATUS_STACK ? ev->args[3] : 0;

  if ((uint32_t)ev->args[2] != TW_GO_SYSCALL) return TB_OK;
  const struct to_call *known = find_open(&a->syscall, m);
  if (known != NULL && known->g == g) return TB_OK;
  TB_TRY(begin_call(a, gen, m, g, ev->time, stack));
  if (m != TO_NONE) a->syscall.last->lower_bound = true;
  return TB_OK;
}

static void lose_proc(struct to_analyses *a, int64_t m, to_ns now) {
  struct to_call *call = find_open(&a->syscall, m);

  if (call == NULL) return;
  if (a->watch.span != NULL && !call->lost_proc) report(a, call, TO_SYSCALL_BLOCKED, now, true);
  call->lost_proc = true;
}

static tb_rc syscall_event(struct to_analyses *a, const struct to_generation *gen,
                           const struct to_event *ev) {
  const struct to_syscall *s = &a->syscall;

  switch (ev->type) {
  case TW_EV_GO_SYSCALL_BEGIN: return begin_call(a, gen, ev->m, ev->g, ev->time, ev->args[1]);
  case TW_EV_GO_SYSCALL_END: return end_call(a, ev->m, ev->time, false);
  case TW_EV_GO_SYSCALL_END_BLOCKED: return end_call(a, ev->m, ev->time, true);
  case TW_EV_GO_CREATE_SYSCALL:
    to_windows_add(&a->windows, s->born, ev->time, ev->time, 0, false);
    return begin_call(a, gen, ev->m, (int64_t)ev->args[0], ev->time, 0);
  case TW_EV_GO_DESTROY_SYSCALL: {
    const struct to_call *call = find_open(&a->syscall, ev->m);
    to_windows_add(&a->windows, s->died, ev->time, ev->time, 0, false);
    return end_call(a, ev->m, ev->time, call != NULL && call->lost_proc);
  }
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK: return take_status(a, gen, ev);
  case TW_EV_PROC_STOP:
    if (ev->g != TO_NONE)
      lose_proc(a, ev->m, ev->time); /* no goroutine: the thread is not in a call */
    return TB_OK;
  case TW_EV_PROC_STEAL:
    /* An abandoned P's thread has moved on; its next call is not the one that lost it. The steal that the
     * orderer puts before GoDestroySyscall names no thread: the call ends by itself there. */
    if (ev->args[3] != TW_PROC_SYSCALL_ABANDONED) lose_proc(a, (int64_t)ev->args[2], ev->time);
    return TB_OK;
  default: return TB_OK;
  }
}

/* The table goes: generations that break one after the other must not walk what an earlier one has filled. */
static void syscall_epoch(struct to_analyses *a) {
  struct to_syscall *s = &a->syscall;

  tb_mem_give(a->mem, s->call, s->places * sizeof(*s->call));
  s->call = s->last = NULL;
  s->places = s->threads = s->open = 0;
}

void to_analyses_overdue(struct to_analyses *a, to_ns age_ns) {
  to_ns now = a->windows.last;

  if (a->watch.span == NULL || a->syscall.open == 0) return;
  for (size_t i = 0; i < a->syscall.places; i++) {
    struct to_call *call = &a->syscall.call[i];

    if (call->m == TO_NONE || !call->open || call->reported || now - call->begin < age_ns) continue;
    report(a, call, TO_SYSCALL_LONG, now, call->lost_proc);
    call->reported = true;
  }
}

/* ---- the report ---- */

static bool row_before(const void *rows, uint32_t a, uint32_t b) {
  const struct to_syscall_row *x = (const struct to_syscall_row *)rows + a;
  const struct to_syscall_row *y = (const struct to_syscall_row *)rows + b;

  if (x->blocked.total_ns != y->blocked.total_ns) return x->blocked.total_ns > y->blocked.total_ns;
  if (x->calls.total_ns != y->calls.total_ns) return x->calls.total_ns > y->calls.total_ns;
  return a < b;
}

/* Also sums the rows: that is all calls, and all that blocked. */
static tb_rc report_rows(struct to_analyses *a, const struct to_view *view, size_t rows_max) {
  struct to_syscall_report *r = &a->report.syscall;
  const struct to_syscall *s = &a->syscall;
  struct to_syscall_row other = { .stack = NULL }, all = { .stack = NULL };
  struct to_syscall_row *found, *listed;
  uint32_t *rank;
  size_t n = 0;

  TB_TRY(tb_arena_take(&a->report_arena, (s->row_of_len + 1) * sizeof(*found), &found));
  TB_TRY(tb_arena_take(&a->report_arena, (s->row_of_len + 1) * sizeof(*rank), &rank));
  for (uint32_t i = 0; i < s->row_of_len; i++) {
    if (s->row_of[i] == 0 || to_view_cell(view, s->row_of[i]) == NULL) continue;
    struct to_syscall_row row = { .stack = to_stack_table_stack(&a->stacks, i),
                                  .calls = to_view_sum(view, s->row_of[i]),
                                  .blocked = to_view_sum(view, s->row_of[i] + 1) };
    to__sum_join(&all.calls, &row.calls);
    to__sum_join(&all.blocked, &row.blocked);
    if (i == TO_STACK_OTHER) {
      other = row;
      continue;
    }
    rank[n] = (uint32_t)n;
    found[n++] = row;
  }
  r->calls = to_view_distribution(view, s->calls_hist, all.calls);
  r->blocked = to_view_distribution(view, s->blocked_hist, all.blocked);
  to_top_rows(rank, n, row_before, found);
  r->rows = n < rows_max ? n : rows_max;
  r->rows_total = n + (other.calls.count > 0);
  for (size_t i = r->rows; i < n; i++) {
    to__sum_join(&other.calls, &found[rank[i]].calls);
    to__sum_join(&other.blocked, &found[rank[i]].blocked);
  }
  TB_TRY(tb_arena_take(&a->report_arena, (r->rows + 1) * sizeof(*listed), &listed));
  for (size_t i = 0; i < r->rows; i++) listed[i] = found[rank[i]];
  if (other.calls.count > 0) listed[r->rows++] = other;
  r->row = listed;
  return TB_OK;
}

static bool call_before(const void *rows, uint32_t a, uint32_t b) {
  const struct to_call *x = (const struct to_call *)rows + a;
  const struct to_call *y = (const struct to_call *)rows + b;

  return x->begin != y->begin ? x->begin < y->begin : x->m < y->m;
}

static uint64_t age(const struct to_call *call, to_ns now) {
  return now > call->begin ? (uint64_t)now - (uint64_t)call->begin : 0;
}

static tb_rc report_blocked_now(struct to_analyses *a, size_t rows_max) {
  struct to_syscall_report *r = &a->report.syscall;
  const struct to_syscall *s = &a->syscall;
  uint64_t after = (uint64_t)a->config.blocked_after_ns;
  to_ns now = a->windows.last;
  struct to_blocked_call *listed;
  uint32_t *rank;
  size_t n = 0;

  TB_TRY(tb_arena_take(&a->report_arena, (s->open + 1) * sizeof(*rank), &rank));
  for (size_t i = 0; i < s->places && s->open > 0; i++)
    if (s->call[i].open && (s->call[i].lost_proc || age(&s->call[i], now) >= after))
      rank[n++] = (uint32_t)i;
  to_top_rows(rank, n, call_before, s->call);
  r->open = s->open;
  r->blocked_now_total = n;
  r->blocked_now = n < rows_max ? n : rows_max;
  TB_TRY(tb_arena_take(&a->report_arena, (r->blocked_now + 1) * sizeof(*listed), &listed));
  for (size_t i = 0; i < r->blocked_now; i++) {
    const struct to_call *call = &s->call[rank[i]];
    listed[i] = (struct to_blocked_call){
      .goroutine = call->g,
      .thread = call->m,
      .start = call->begin,
      .age_ns = age(call, now),
      .lost_proc = call->lost_proc,
      .lower_bound = call->lower_bound,
      .stack = to_stack_table_stack(&a->stacks, call->stack),
    };
  }
  r->call = listed;
  return TB_OK;
}

static tb_rc syscall_report(struct to_analyses *a, const struct to_view *view, size_t rows_max) {
  const struct to_syscall *s = &a->syscall;

  a->report.syscall = (struct to_syscall_report){
    .born = to_view_sum(view, s->born).count,
    .died = to_view_sum(view, s->died).count,
    .blocked_after_ns = a->config.blocked_after_ns,
  };
  TB_TRY(report_rows(a, view, rows_max));
  return report_blocked_now(a, rows_max);
}

const struct to_analysis_ops to__analysis_syscall = {
  .events = TO_ANALYSIS_EVENT(GO_SYSCALL_BEGIN) | TO_ANALYSIS_EVENT(GO_SYSCALL_END) |
            TO_ANALYSIS_EVENT(GO_SYSCALL_END_BLOCKED) | TO_ANALYSIS_EVENT(GO_CREATE_SYSCALL) |
            TO_ANALYSIS_EVENT(GO_DESTROY_SYSCALL) | TO_ANALYSIS_EVENT(GO_STATUS) |
            TO_ANALYSIS_EVENT(GO_STATUS_STACK) | TO_ANALYSIS_EVENT(PROC_STOP) |
            TO_ANALYSIS_EVENT(PROC_STEAL),
  .init = syscall_init,
  .fini = syscall_fini,
  .event = syscall_event,
  .epoch = syscall_epoch,
  .report = syscall_report,
};
