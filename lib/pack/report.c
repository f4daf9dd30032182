/* SPDX-License-Identifier: Apache-2.0 */
/* The message is built in an arena, sized, and packed straight into the caller's buf. */
#include "pack/report.h"

#include <string.h>

#include "base/arena.h"
#include "pack/text.h"
#include "proto/report.pb-c.h"

enum { CHUNK_BYTES = 64 << 10, STREAM_BYTES = 16 };

static tb_rc take_sum(struct tb_arena *arena, const struct to_sum *sum,
                      Tracecollect__V1__Sum **out) {
  Tracecollect__V1__Sum *message;

  TP_TAKE(arena, Tracecollect__V1__Sum, 1, message);
  tracecollect__v1__sum__init(message);
  message->count = sum->count;
  message->total_ns = sum->total_ns;
  message->max_ns = sum->max_ns;
  message->lower_bounds = sum->lower_bounds;
  *out = message;
  return TB_OK;
}

static tb_rc take_distribution(struct tb_arena *arena, const struct to_distribution *d,
                               Tracecollect__V1__Distribution **out) {
  Tracecollect__V1__Distribution *message;

  TP_TAKE(arena, Tracecollect__V1__Distribution, 1, message);
  tracecollect__v1__distribution__init(message);
  message->count = d->sum.count;
  message->total_ns = d->sum.total_ns;
  message->max_ns = d->sum.max_ns;
  message->lower_bounds = d->sum.lower_bounds;
  message->p50_ns = d->p50_ns;
  message->p90_ns = d->p90_ns;
  message->p99_ns = d->p99_ns;
  *out = message;
  return TB_OK;
}

static tb_rc take_syscall_rows(struct tb_arena *arena, const struct to_syscall_report *r,
                               Tracecollect__V1__SyscallReport *message) {
  Tracecollect__V1__SyscallStack *rows;

  TP_TAKE(arena, Tracecollect__V1__SyscallStack, r->rows, rows);
  TP_TAKE(arena, Tracecollect__V1__SyscallStack *, r->rows, message->stacks);
  message->n_stacks = r->rows;
  for (size_t i = 0; i < r->rows; i++) {
    const struct to_syscall_row *row = &r->row[i];
    message->stacks[i] = &rows[i];
    tracecollect__v1__syscall_stack__init(&rows[i]);
    TB_TRY(tp_take_stack(arena, row->stack, &rows[i].n_stack, &rows[i].stack));
    TB_TRY(take_sum(arena, &row->calls, &rows[i].calls));
    TB_TRY(take_sum(arena, &row->blocked, &rows[i].blocked));
    rows[i].other = row->stack == NULL;
  }
  return TB_OK;
}

static tb_rc take_blocked_now(struct tb_arena *arena, const struct to_syscall_report *r,
                              Tracecollect__V1__SyscallReport *message) {
  Tracecollect__V1__BlockedCall *calls;

  TP_TAKE(arena, Tracecollect__V1__BlockedCall, r->blocked_now, calls);
  TP_TAKE(arena, Tracecollect__V1__BlockedCall *, r->blocked_now, message->blocked_now);
  message->n_blocked_now = r->blocked_now;
  for (size_t i = 0; i < r->blocked_now; i++) {
    const struct to_blocked_call *call = &r->call[i];
    message->blocked_now[i] = &calls[i];
    tracecollect__v1__blocked_call__init(&calls[i]);
    calls[i].goroutine = call->goroutine;
    calls[i].thread = call->thread;
    calls[i].start_ns = call->start;
    calls[i].age_ns = call->age_ns;
    calls[i].lost_proc = call->lost_proc;
    calls[i].lower_bound = call->lower_bound;
    TB_TRY(tp_take_stack(arena, call->stack, &calls[i].n_stack, &calls[i].stack));
  }
  return TB_OK;
}

static tb_rc take_syscall(struct tb_arena *arena, const struct to_syscall_report *r,
                          Tracecollect__V1__SyscallReport **out) {
  Tracecollect__V1__SyscallReport *message;

  TP_TAKE(arena, Tracecollect__V1__SyscallReport, 1, message);
  tracecollect__v1__syscall_report__init(message);
  TB_TRY(take_distribution(arena, &r->calls, &message->calls));
  TB_TRY(take_distribution(arena, &r->blocked, &message->blocked));
  TB_TRY(take_syscall_rows(arena, r, message));
  TB_TRY(take_blocked_now(arena, r, message));
  message->blocked_after_ns = (uint64_t)r->blocked_after_ns;
  message->stacks_total = r->rows_total;
  message->blocked_now_total = r->blocked_now_total;
  message->open = r->open;
  message->born = r->born;
  message->died = r->died;
  *out = message;
  return TB_OK;
}

static tb_rc take_reasons(struct tb_arena *arena, const struct to_stw_report *r,
                          Tracecollect__V1__StwReport *message) {
  Tracecollect__V1__StwReason *reasons;

  TP_TAKE(arena, Tracecollect__V1__StwReason, r->reasons, reasons);
  TP_TAKE(arena, Tracecollect__V1__StwReason *, r->reasons, message->reasons);
  message->n_reasons = r->reasons;
  for (size_t i = 0; i < r->reasons; i++) {
    message->reasons[i] = &reasons[i];
    tracecollect__v1__stw_reason__init(&reasons[i]);
    TB_TRY(tp_take_text(arena, r->reason[i].reason, &reasons[i].reason));
    reasons[i].id = (char *)(uintptr_t)r->reason[i].id;
    TB_TRY(take_distribution(arena, &r->reason[i].stopped, &reasons[i].stopped));
    reasons[i].open = r->reason[i].open;
  }
  return TB_OK;
}

static tb_rc take_stoppers(struct tb_arena *arena, const struct to_stw_report *r,
                           Tracecollect__V1__StwReport *message) {
  Tracecollect__V1__StwStopper *stoppers;

  TP_TAKE(arena, Tracecollect__V1__StwStopper, r->stoppers, stoppers);
  TP_TAKE(arena, Tracecollect__V1__StwStopper *, r->stoppers, message->stoppers);
  message->n_stoppers = r->stoppers;
  for (size_t i = 0; i < r->stoppers; i++) {
    const struct to_stw_stopper *stopper = &r->stopper[i];
    message->stoppers[i] = &stoppers[i];
    tracecollect__v1__stw_stopper__init(&stoppers[i]);
    stoppers[i].goroutine = stopper->goroutine;
    stoppers[i].other = stopper->other;
    TB_TRY(tp_take_text(arena, stopper->reason, &stoppers[i].reason));
    TB_TRY(take_sum(arena, &stopper->stopped, &stoppers[i].stopped));
    TB_TRY(tp_take_stack(arena, stopper->stack, &stoppers[i].n_stack, &stoppers[i].stack));
  }
  return TB_OK;
}

static tb_rc take_stw(struct tb_arena *arena, const struct to_stw_report *r,
                      Tracecollect__V1__StwReport **out) {
  Tracecollect__V1__StwReport *message;

  TP_TAKE(arena, Tracecollect__V1__StwReport, 1, message);
  tracecollect__v1__stw_report__init(message);
  TB_TRY(take_distribution(arena, &r->stopped, &message->stopped));
  TB_TRY(take_distribution(arena, &r->time_to_stop, &message->time_to_stop));
  TB_TRY(take_reasons(arena, r, message));
  TB_TRY(take_stoppers(arena, r, message));
  message->share_of_wall = r->share_of_wall;
  message->stoppers_total = r->stoppers_total;
  *out = message;
  return TB_OK;
}

static tb_rc take_stream(struct tb_arena *arena, const struct to_report *r,
                         const struct tp_report_about *about,
                         Tracecollect__V1__StreamReport *message) {
  tracecollect__v1__stream_report__init(message);
  if (about->stream != NULL) {
    message->stream.data = (uint8_t *)(uintptr_t)about->stream;
    message->stream.len = STREAM_BYTES;
  }
  if (about->service != NULL) message->service = (char *)(uintptr_t)about->service;
  if (about->instance != NULL) message->instance = (char *)(uintptr_t)about->instance;
  message->kind = (char *)(uintptr_t)to_analysis_name(r->kind);
  message->window = (char *)(uintptr_t)to_window_name(r->window);
  message->from_ns = r->from;
  message->until_ns = r->until;
  message->from_wall_ns = r->from_wall_ns;
  message->until_wall_ns = r->until_wall_ns;
  message->first_gen = r->first_gen;
  message->last_gen = r->last_gen;
  message->events = r->events;
  message->broken_generations = about->broken_generations;
  message->epochs = r->epochs;
  switch (r->kind) {
  case TO_ANALYSIS_SYSCALL: return take_syscall(arena, &r->syscall, &message->syscall);
  case TO_ANALYSIS_STW: return take_stw(arena, &r->stw, &message->stw);
  case TO_ANALYSIS_KINDS: break;
  }
  return TB_UNSUPPORTED;
}

tb_rc tp_report_pack(struct to_analyses *analyses, enum to_analysis_kind kind,
                     enum to_window window, size_t rows_max, const struct tp_report_about *about,
                     struct tb_buf *out) {
  Tracecollect__V1__StreamReport message;
  const struct to_report *report;
  struct tb_arena arena;
  tb_rc rc;

  TB_TRY(to_analyses_report(analyses, kind, window, rows_max, &report));
  tb_arena_init(&arena, out->mem, CHUNK_BYTES);
  rc = take_stream(&arena, report, about, &message);
  if (rc == TB_OK) {
    size_t bytes = tracecollect__v1__stream_report__get_packed_size(&message);
    rc = tb_buf_reserve(out, bytes);
    if (rc == TB_OK)
      out->len += tracecollect__v1__stream_report__pack(&message, out->data + out->len);
  }
  tb_arena_fini(&arena);
  return rc;
}
