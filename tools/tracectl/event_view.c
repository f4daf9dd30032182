/* SPDX-License-Identifier: Apache-2.0 */
/* What an ordered event means, in the terms of Go's public reader: kind, stack, transition, range. */
#include "online/generation.h"
#include "tools/tracectl/print.h"
#include "wire/spec.h"

enum tk_event_kind tk_event_kind(const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_SYNC: return TK_KIND_SYNC;
  case TW_EV_CPU_SAMPLE: return TK_KIND_STACK_SAMPLE;
  case TW_EV_PROCS_CHANGE:
  case TW_EV_HEAP_ALLOC:
  case TW_EV_HEAP_GOAL: return TK_KIND_METRIC;
  case TW_EV_GO_LABEL: return TK_KIND_LABEL;
  case TW_EV_STW_BEGIN:
  case TW_EV_GC_BEGIN:
  case TW_EV_GC_SWEEP_BEGIN:
  case TW_EV_GC_MARK_ASSIST_BEGIN: return TK_KIND_RANGE_BEGIN;
  case TW_EV_GC_ACTIVE:
  case TW_EV_GC_SWEEP_ACTIVE:
  case TW_EV_GC_MARK_ASSIST_ACTIVE: return TK_KIND_RANGE_ACTIVE;
  case TW_EV_STW_END:
  case TW_EV_GC_END:
  case TW_EV_GC_SWEEP_END:
  case TW_EV_GC_MARK_ASSIST_END: return TK_KIND_RANGE_END;
  case TW_EV_USER_TASK_BEGIN: return TK_KIND_TASK_BEGIN;
  case TW_EV_USER_TASK_END: return TK_KIND_TASK_END;
  case TW_EV_USER_REGION_BEGIN: return TK_KIND_REGION_BEGIN;
  case TW_EV_USER_REGION_END: return TK_KIND_REGION_END;
  case TW_EV_USER_LOG: return TK_KIND_LOG;
  default: break;
  }
  switch (tw_spec(ev->type)->kind) {
  case TW_KIND_EXPERIMENT: return TK_KIND_EXPERIMENTAL;
  case TW_KIND_TIMED: return TK_KIND_TRANSITION;
  default: return TK_KIND_BAD;
  }
}

const char *tk_event_kind_name(enum tk_event_kind kind) {
  static const char *const names[] = {
    "Bad",         "Sync",        "Metric",   "Label",           "StackSample",
    "RangeBegin",  "RangeActive", "RangeEnd", "TaskBegin",       "TaskEnd",
    "RegionBegin", "RegionEnd",   "Log",      "StateTransition", "Experimental",
  };
  return names[kind];
}

uint64_t tk_event_stack(const struct to_event *ev) {
  const struct tw_spec *spec = tw_spec(ev->type);

  if (ev->type == TW_EV_SYNC) return TK_NO_STACK;
  if (ev->type == TW_EV_CPU_SAMPLE)
    return ev->args[0]; /* also the empty stack: it prints a heading */
  /* The context's own stack is the last argument, where an event has one. */
  if (spec->nargs == 0 || spec->args[spec->nargs - 1].type != TW_ARG_STACK) return TK_NO_STACK;
  uint64_t id = ev->args[spec->nargs - 1];
  return id == 0 ? TK_NO_STACK : id;
}

static const char *go_status_name(uint64_t status) {
  static const enum to_go_state states[] = {
    [TW_GO_RUNNABLE] = TO_GO_RUNNABLE,
    [TW_GO_RUNNING] = TO_GO_RUNNING,
    [TW_GO_SYSCALL] = TO_GO_SYSCALL,
    [TW_GO_WAITING] = TO_GO_WAITING,
  };
  return to_go_state_name(status < TW_GO_STATUSES ? states[status] : TO_GO_UNDETERMINED);
}

static const char *proc_status_name(uint64_t status) {
  static const enum to_proc_state states[] = {
    [TW_PROC_RUNNING] = TO_PROC_RUNNING,
    [TW_PROC_IDLE] = TO_PROC_IDLE,
    [TW_PROC_SYSCALL] = TO_PROC_RUNNING,
    [TW_PROC_SYSCALL_ABANDONED] = TO_PROC_IDLE,
  };
  return to_proc_state_name(status < TW_PROC_STATUSES ? states[status] : TO_PROC_UNDETERMINED);
}

static void goroutine(struct tk_transition *out, uint64_t id, enum to_go_state from,
                      enum to_go_state to) {
  *out = (struct tk_transition){ .id = (int64_t)id,
                                 .from = to_go_state_name(from),
                                 .to = to_go_state_name(to),
                                 .stack = TK_NO_STACK };
}

static void proc(struct tk_transition *out, uint64_t id, enum to_proc_state from,
                 enum to_proc_state to) {
  *out = (struct tk_transition){ .proc = true,
                                 .id = (int64_t)id,
                                 .from = to_proc_state_name(from),
                                 .to = to_proc_state_name(to),
                                 .stack = TK_NO_STACK };
}

void tk_event_transition(const struct to_event *ev, struct tk_transition *out) {
  const uint64_t *a = ev->args;
  uint64_t self = (uint64_t)ev->g;

  switch (ev->type) {
  case TW_EV_PROC_START: proc(out, a[0], TO_PROC_IDLE, TO_PROC_RUNNING); break;
  case TW_EV_PROC_STOP: proc(out, (uint64_t)ev->p, TO_PROC_RUNNING, TO_PROC_IDLE); break;
  case TW_EV_PROC_STEAL:
    proc(out, a[0], a[3] == TW_PROC_SYSCALL_ABANDONED ? TO_PROC_IDLE : TO_PROC_RUNNING,
         TO_PROC_IDLE);
    break;
  case TW_EV_PROC_STATUS:
    proc(out, a[0], (enum to_proc_state)a[2], TO_PROC_UNDETERMINED);
    out->to = proc_status_name(a[1] & 0xff);
    break;
  case TW_EV_GO_CREATE:
    goroutine(out, a[0], TO_GO_NOT_EXIST, TO_GO_RUNNABLE);
    out->stack = a[1];
    break;
  case TW_EV_GO_CREATE_BLOCKED:
    goroutine(out, a[0], TO_GO_NOT_EXIST, TO_GO_WAITING);
    out->stack = a[1];
    break;
  case TW_EV_GO_CREATE_SYSCALL: goroutine(out, a[0], TO_GO_NOT_EXIST, TO_GO_SYSCALL); break;
  case TW_EV_GO_START: goroutine(out, a[0], TO_GO_RUNNABLE, TO_GO_RUNNING); break;
  case TW_EV_GO_DESTROY: goroutine(out, self, TO_GO_RUNNING, TO_GO_NOT_EXIST); break;
  case TW_EV_GO_DESTROY_SYSCALL: goroutine(out, self, TO_GO_SYSCALL, TO_GO_NOT_EXIST); break;
  case TW_EV_GO_STOP:
  case TW_EV_GO_BLOCK:
    goroutine(out, self, TO_GO_RUNNING, ev->type == TW_EV_GO_STOP ? TO_GO_RUNNABLE : TO_GO_WAITING);
    out->reason = a[0];
    out->stack = tk_event_stack(ev);
    break;
  case TW_EV_GO_UNBLOCK:
  case TW_EV_GO_SWITCH: /* the other two of its three events are a GoBlock or GoDestroy and a GoStart */
  case TW_EV_GO_SWITCH_DESTROY: goroutine(out, a[0], TO_GO_WAITING, TO_GO_RUNNABLE); break;
  case TW_EV_GO_SYSCALL_BEGIN:
    goroutine(out, self, TO_GO_RUNNING, TO_GO_SYSCALL);
    out->stack = tk_event_stack(ev);
    break;
  case TW_EV_GO_SYSCALL_END: goroutine(out, self, TO_GO_SYSCALL, TO_GO_RUNNING); break;
  case TW_EV_GO_SYSCALL_END_BLOCKED: goroutine(out, self, TO_GO_SYSCALL, TO_GO_RUNNABLE); break;
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK:
    goroutine(out, a[0], (enum to_go_state)(a[2] >> 32), TO_GO_UNDETERMINED);
    out->to = go_status_name(a[2] & UINT32_MAX);
    out->stack = tk_event_stack(ev);
    break;
  default: goroutine(out, self, TO_GO_UNDETERMINED, TO_GO_UNDETERMINED); break;
  }
}

void tk_event_range(const struct to_event *ev, struct tk_range *out) {
  switch (ev->type) {
  case TW_EV_STW_BEGIN:
  case TW_EV_STW_END: *out = (struct tk_range){ NULL, ev->args[0], "Goroutine", ev->g }; break;
  case TW_EV_GC_SWEEP_ACTIVE:
    *out = (struct tk_range){ "GC incremental sweep", 0, "Proc", (int64_t)ev->args[0] };
    break;
  case TW_EV_GC_SWEEP_BEGIN:
  case TW_EV_GC_SWEEP_END:
    *out = (struct tk_range){ "GC incremental sweep", 0, "Proc", ev->p };
    break;
  case TW_EV_GC_MARK_ASSIST_ACTIVE:
    *out = (struct tk_range){ "GC mark assist", 0, "Goroutine", (int64_t)ev->args[0] };
    break;
  case TW_EV_GC_MARK_ASSIST_BEGIN:
  case TW_EV_GC_MARK_ASSIST_END:
    *out = (struct tk_range){ "GC mark assist", 0, "Goroutine", ev->g };
    break;
  default: *out = (struct tk_range){ "GC concurrent mark phase", 0, "None", 0 }; break;
  }
}

const char *tk_event_metric(const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_PROCS_CHANGE: return "/sched/gomaxprocs:threads";
  case TW_EV_HEAP_ALLOC: return "/memory/classes/heap/objects:bytes";
  default: return "/gc/heap/goal:bytes";
  }
}
