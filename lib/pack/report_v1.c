/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/report_v1.h"

#include <string.h>

#include "pack/report_read.h"
#include "pack/text.h"

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Sum Sum;

static Distribution *distribution_of(const Value *value) {
  return (Distribution *)(uintptr_t)tp_value_distribution(value);
}

static tb_rc take_sum(struct tb_arena *arena, const Row *row, size_t column, Sum **out) {
  const Distribution *d = tp_row_distribution(row, column);

  TP_TAKE(arena, Sum, 1, *out);
  tracecollect__v1__sum__init(*out);
  if (d == NULL) return TB_OK;
  (*out)->count = d->count;
  (*out)->total_ns = d->total_ns;
  (*out)->max_ns = d->max_ns;
  (*out)->lower_bounds = d->lower_bounds;
  return TB_OK;
}

static tb_rc take_stack(struct tb_arena *arena, const Report *r, const Row *row, size_t column,
                        size_t *out_n, Tracecollect__V1__Frame ***out) {
  const Value *stack = tp_row_value(row, column);
  size_t n = tp_stack_length(r, stack);

  TP_TAKE(arena, Tracecollect__V1__Frame *, n, *out);
  for (size_t i = 0; i < n; i++)
    (*out)[i] = (Tracecollect__V1__Frame *)(uintptr_t)tp_stack_frame(r, stack, i);
  *out_n = n;
  return TB_OK;
}

static tb_rc fill_stacks(struct tb_arena *arena, const Report *r,
                         Tracecollect__V1__SyscallReport *message) {
  Tracecollect__V1__SyscallStack *rows;
  struct tp_table table;

  (void)tp_report_table(r, "by_stack", &table);
  size_t n = table.table->n_rows;
  TP_TAKE(arena, Tracecollect__V1__SyscallStack, n, rows);
  TP_TAKE(arena, Tracecollect__V1__SyscallStack *, n, message->stacks);
  message->n_stacks = n;
  message->stacks_total = table.table->rows_total;
  for (size_t i = 0; i < n; i++) {
    const Row *row = table.table->rows[i];
    message->stacks[i] = &rows[i];
    tracecollect__v1__syscall_stack__init(&rows[i]);
    rows[i].other = row->other;
    TB_TRY(take_stack(arena, r, row, tp_table_column(&table, "stack"), &rows[i].n_stack,
                      &rows[i].stack));
    TB_TRY(take_sum(arena, row, tp_table_column(&table, "calls"), &rows[i].calls));
    TB_TRY(take_sum(arena, row, tp_table_column(&table, "blocked"), &rows[i].blocked));
  }
  return TB_OK;
}

static tb_rc fill_blocked_now(struct tb_arena *arena, const Report *r,
                              Tracecollect__V1__SyscallReport *message) {
  Tracecollect__V1__BlockedCall *calls;
  struct tp_table table;

  (void)tp_report_table(r, "blocked_now", &table);
  size_t n = table.table->n_rows;
  TP_TAKE(arena, Tracecollect__V1__BlockedCall, n, calls);
  TP_TAKE(arena, Tracecollect__V1__BlockedCall *, n, message->blocked_now);
  message->n_blocked_now = n;
  message->blocked_now_total = table.table->rows_total;
  for (size_t i = 0; i < n; i++) {
    const Row *row = table.table->rows[i];
    message->blocked_now[i] = &calls[i];
    tracecollect__v1__blocked_call__init(&calls[i]);
    calls[i].goroutine = tp_row_number(row, tp_table_column(&table, "goroutine"));
    calls[i].thread = tp_row_number(row, tp_table_column(&table, "thread"));
    calls[i].start_ns = tp_row_number(row, tp_table_column(&table, "start_ns"));
    calls[i].age_ns = (uint64_t)tp_row_number(row, tp_table_column(&table, "age_ns"));
    calls[i].lost_proc = tp_row_number(row, tp_table_column(&table, "lost_proc")) != 0;
    calls[i].lower_bound = tp_row_number(row, tp_table_column(&table, "lower_bound")) != 0;
    TB_TRY(take_stack(arena, r, row, tp_table_column(&table, "stack"), &calls[i].n_stack,
                      &calls[i].stack));
  }
  return TB_OK;
}

static tb_rc take_syscall(struct tb_arena *arena, const Report *r,
                          Tracecollect__V1__SyscallReport **out) {
  Tracecollect__V1__SyscallReport *message;

  TP_TAKE(arena, Tracecollect__V1__SyscallReport, 1, message);
  tracecollect__v1__syscall_report__init(message);
  message->calls = distribution_of(tp_report_figure(r, "calls"));
  message->blocked = distribution_of(tp_report_figure(r, "blocked"));
  message->open = (uint64_t)tp_value_number(tp_report_figure(r, "open"));
  message->born = (uint64_t)tp_value_number(tp_report_figure(r, "born"));
  message->died = (uint64_t)tp_value_number(tp_report_figure(r, "died"));
  message->blocked_after_ns = (uint64_t)tp_value_number(tp_report_option(r, "blocked_after_ns"));
  *out = message;
  TB_TRY(fill_stacks(arena, r, message));
  return fill_blocked_now(arena, r, message);
}

static tb_rc fill_reasons(struct tb_arena *arena, const Report *r,
                          Tracecollect__V1__StwReport *message) {
  Tracecollect__V1__StwReason *reasons;
  struct tp_table table;

  (void)tp_report_table(r, "by_reason", &table);
  size_t n = table.table->n_rows;
  TP_TAKE(arena, Tracecollect__V1__StwReason, n, reasons);
  TP_TAKE(arena, Tracecollect__V1__StwReason *, n, message->reasons);
  for (size_t i = 0; i < n; i++) {
    const Row *row = table.table->rows[i];
    if (row->other) continue; /* it had all reasons */
    message->reasons[message->n_reasons++] = &reasons[i];
    tracecollect__v1__stw_reason__init(&reasons[i]);
    reasons[i].reason = (char *)(uintptr_t)tp_row_text(row, tp_table_column(&table, "reason"));
    reasons[i].id = (char *)(uintptr_t)tp_row_text(row, tp_table_column(&table, "id"));
    reasons[i].stopped = distribution_of(tp_row_value(row, tp_table_column(&table, "stopped")));
    reasons[i].open = (uint64_t)tp_row_number(row, tp_table_column(&table, "open"));
  }
  return TB_OK;
}

static tb_rc fill_stoppers(struct tb_arena *arena, const Report *r,
                           Tracecollect__V1__StwReport *message) {
  Tracecollect__V1__StwStopper *stoppers;
  struct tp_table table;

  (void)tp_report_table(r, "by_goroutine", &table);
  size_t n = table.table->n_rows;
  TP_TAKE(arena, Tracecollect__V1__StwStopper, n, stoppers);
  TP_TAKE(arena, Tracecollect__V1__StwStopper *, n, message->stoppers);
  message->n_stoppers = n;
  message->stoppers_total = table.table->rows_total;
  for (size_t i = 0; i < n; i++) {
    const Row *row = table.table->rows[i];
    message->stoppers[i] = &stoppers[i];
    tracecollect__v1__stw_stopper__init(&stoppers[i]);
    stoppers[i].other = row->other;
    stoppers[i].goroutine =
        row->other ? -1 : tp_row_number(row, tp_table_column(&table, "goroutine"));
    stoppers[i].reason = (char *)(uintptr_t)tp_row_text(row, tp_table_column(&table, "reason"));
    TB_TRY(take_sum(arena, row, tp_table_column(&table, "stopped"), &stoppers[i].stopped));
    TB_TRY(take_stack(arena, r, row, tp_table_column(&table, "stack"), &stoppers[i].n_stack,
                      &stoppers[i].stack));
  }
  return TB_OK;
}

static tb_rc take_stw(struct tb_arena *arena, const Report *r, Tracecollect__V1__StwReport **out) {
  Tracecollect__V1__StwReport *message;

  TP_TAKE(arena, Tracecollect__V1__StwReport, 1, message);
  tracecollect__v1__stw_report__init(message);
  message->stopped = distribution_of(tp_report_figure(r, "stopped"));
  message->time_to_stop = distribution_of(tp_report_figure(r, "time_to_stop"));
  message->share_of_wall = tp_value_share(tp_report_figure(r, "wall_share"));
  *out = message;
  TB_TRY(fill_reasons(arena, r, message));
  return fill_stoppers(arena, r, message);
}

tb_rc tp_report_v1_fill(struct tb_arena *arena, Tracecollect__V1__StreamReport *message) {
  if (strcmp(message->kind, "syscall") == 0)
    return take_syscall(arena, message->report, &message->syscall);
  if (strcmp(message->kind, "stw") == 0) return take_stw(arena, message->report, &message->stw);
  return TB_OK;
}
