/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/trim.h"

#include "event/event.h"

static void sum_join(Tracecollect__V1__Sum *into, const Tracecollect__V1__Sum *from) {
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
}

/* The row of the rest comes last; if there is none, the first row that is cut becomes it. */
static void trim_stacks(Tracecollect__V1__SyscallReport *r, size_t rows) {
  size_t n = r->n_stacks;

  if (n <= rows || (n == rows + 1 && r->stacks[n - 1]->other)) return;
  Tracecollect__V1__SyscallStack *other = r->stacks[rows];
  other->other = true;
  other->n_stack = 0;
  for (size_t i = rows + 1; i < n; i++) {
    sum_join(other->calls, r->stacks[i]->calls);
    sum_join(other->blocked, r->stacks[i]->blocked);
  }
  r->n_stacks = rows + 1;
}

static void trim_stoppers(Tracecollect__V1__StwReport *r, size_t rows) {
  size_t n = r->n_stoppers;

  if (n <= rows || (n == rows + 1 && r->stoppers[n - 1]->other)) return;
  Tracecollect__V1__StwStopper *other = r->stoppers[rows];
  static char none[] = "";
  other->other = true;
  other->n_stack = 0;
  other->goroutine = TO_NONE;
  other->reason = none;
  for (size_t i = rows + 1; i < n; i++) sum_join(other->stopped, r->stoppers[i]->stopped);
  r->n_stoppers = rows + 1;
}

void tp_report_trim(Tracecollect__V1__StreamReport *report, size_t rows) {
  if (rows == 0) return;
  if (report->syscall != NULL) {
    trim_stacks(report->syscall, rows);
    if (report->syscall->n_blocked_now > rows) report->syscall->n_blocked_now = rows;
  }
  if (report->stw != NULL) trim_stoppers(report->stw, rows);
}
