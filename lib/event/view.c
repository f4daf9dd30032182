/* SPDX-License-Identifier: Apache-2.0 */
#include "event/view.h"

#include <string.h>

#include "wire/experiments.h"

enum to_event_kind to_event_kind(const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_SYNC: return TO_KIND_SYNC;
  case TW_EV_CPU_SAMPLE: return TO_KIND_STACK_SAMPLE;
  case TW_EV_PROCS_CHANGE:
  case TW_EV_HEAP_ALLOC:
  case TW_EV_HEAP_GOAL: return TO_KIND_METRIC;
  case TW_EV_GO_LABEL: return TO_KIND_LABEL;
  case TW_EV_STW_BEGIN:
  case TW_EV_GC_BEGIN:
  case TW_EV_GC_SWEEP_BEGIN:
  case TW_EV_GC_MARK_ASSIST_BEGIN: return TO_KIND_RANGE_BEGIN;
  case TW_EV_GC_ACTIVE:
  case TW_EV_GC_SWEEP_ACTIVE:
  case TW_EV_GC_MARK_ASSIST_ACTIVE: return TO_KIND_RANGE_ACTIVE;
  case TW_EV_STW_END:
  case TW_EV_GC_END:
  case TW_EV_GC_SWEEP_END:
  case TW_EV_GC_MARK_ASSIST_END: return TO_KIND_RANGE_END;
  case TW_EV_USER_TASK_BEGIN: return TO_KIND_TASK_BEGIN;
  case TW_EV_USER_TASK_END: return TO_KIND_TASK_END;
  case TW_EV_USER_REGION_BEGIN: return TO_KIND_REGION_BEGIN;
  case TW_EV_USER_REGION_END: return TO_KIND_REGION_END;
  case TW_EV_USER_LOG: return TO_KIND_LOG;
  default: break;
  }
  if (ev->type >= TW_OWN_EVENT_FIRST) return TO_KIND_EXPERIMENTAL;
  switch (tw_spec(ev->type)->kind) {
  case TW_KIND_EXPERIMENT: return TO_KIND_EXPERIMENTAL;
  case TW_KIND_TIMED: return TO_KIND_TRANSITION;
  default: return TO_KIND_BAD;
  }
}

const char *to_event_kind_name(enum to_event_kind kind) {
  static const char *const names[] = {
    "Bad",         "Sync",        "Metric",   "Label",           "StackSample",
    "RangeBegin",  "RangeActive", "RangeEnd", "TaskBegin",       "TaskEnd",
    "RegionBegin", "RegionEnd",   "Log",      "StateTransition", "Experimental",
  };
  return names[kind];
}

uint64_t to_event_stack(const struct to_event *ev) {
  const struct tw_spec *spec = tw_spec(ev->type);

  if (ev->type == TW_EV_SYNC) return TO_NO_STACK;
  if (ev->type == TW_EV_CPU_SAMPLE)
    return ev->args[0]; /* also the empty stack: it prints a heading */
  /* The context's own stack is the last argument, where an event has one. */
  if (spec->nargs == 0 || spec->args[spec->nargs - 1].type != TW_ARG_STACK) return TO_NO_STACK;
  uint64_t id = ev->args[spec->nargs - 1];
  return id == 0 ? TO_NO_STACK : id;
}

const char *to_resource_name(enum to_resource resource) {
  static const char *const names[] = { "None", "Goroutine", "Proc", "Thread", "Process" };
  return names[resource];
}

const char *to_state_name(enum to_resource resource, uint8_t state) {
  return resource == TO_RESOURCE_PROC ? to_proc_state_name((enum to_proc_state)state)
                                      : to_go_state_name((enum to_go_state)state);
}

static enum to_go_state go_state(uint64_t status) {
  static const enum to_go_state states[] = {
    [TW_GO_RUNNABLE] = TO_GO_RUNNABLE,
    [TW_GO_RUNNING] = TO_GO_RUNNING,
    [TW_GO_SYSCALL] = TO_GO_SYSCALL,
    [TW_GO_WAITING] = TO_GO_WAITING,
  };
  return status < TW_GO_STATUSES ? states[status] : TO_GO_UNDETERMINED;
}

static enum to_proc_state proc_state(uint64_t status) {
  static const enum to_proc_state states[] = {
    [TW_PROC_RUNNING] = TO_PROC_RUNNING,
    [TW_PROC_IDLE] = TO_PROC_IDLE,
    [TW_PROC_SYSCALL] = TO_PROC_RUNNING,
    [TW_PROC_SYSCALL_ABANDONED] = TO_PROC_IDLE,
  };
  return status < TW_PROC_STATUSES ? states[status] : TO_PROC_UNDETERMINED;
}

static void goroutine(struct to_transition *out, uint64_t id, enum to_go_state from,
                      enum to_go_state to) {
  *out = (struct to_transition){ TO_RESOURCE_GOROUTINE, (int64_t)id, (uint8_t)from,
                                 (uint8_t)to,           0,           TO_NO_STACK };
}

static void proc(struct to_transition *out, uint64_t id, enum to_proc_state from,
                 enum to_proc_state to) {
  *out = (struct to_transition){ TO_RESOURCE_PROC, (int64_t)id, (uint8_t)from,
                                 (uint8_t)to,      0,           TO_NO_STACK };
}

void to_event_transition(const struct to_event *ev, struct to_transition *out) {
  const uint64_t *a = ev->args;
  uint64_t self = (uint64_t)ev->g;

  switch (ev->type) {
  case TW_EV_PROC_START: proc(out, a[0], TO_PROC_IDLE, TO_PROC_RUNNING); break;
  case TW_EV_PROC_STOP: proc(out, (uint64_t)ev->p, TO_PROC_RUNNING, TO_PROC_IDLE); break;
  case TW_EV_PROC_STEAL:
    proc(out, a[0], a[3] == TW_PROC_SYSCALL_ABANDONED ? TO_PROC_IDLE : TO_PROC_RUNNING,
         TO_PROC_IDLE);
    break;
  case TW_EV_PROC_STATUS: proc(out, a[0], (enum to_proc_state)a[2], proc_state(a[1] & 0xff)); break;
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
    out->stack = to_event_stack(ev);
    break;
  case TW_EV_GO_UNBLOCK:
  case TW_EV_GO_SWITCH: /* the other two of its three events are a GoBlock or GoDestroy and a GoStart */
  case TW_EV_GO_SWITCH_DESTROY: goroutine(out, a[0], TO_GO_WAITING, TO_GO_RUNNABLE); break;
  case TW_EV_GO_SYSCALL_BEGIN:
    goroutine(out, self, TO_GO_RUNNING, TO_GO_SYSCALL);
    out->stack = to_event_stack(ev);
    break;
  case TW_EV_GO_SYSCALL_END: goroutine(out, self, TO_GO_SYSCALL, TO_GO_RUNNING); break;
  case TW_EV_GO_SYSCALL_END_BLOCKED: goroutine(out, self, TO_GO_SYSCALL, TO_GO_RUNNABLE); break;
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK:
    goroutine(out, a[0], (enum to_go_state)(a[2] >> 32), go_state(a[2] & UINT32_MAX));
    out->stack = to_event_stack(ev);
    break;
  default: goroutine(out, self, TO_GO_UNDETERMINED, TO_GO_UNDETERMINED); break;
  }
}

static const struct to_reason_info reasons[] = {
  [TO_REASON_OTHER] = { NULL, "other", "/other", 22, "A reason this program does not know." },
#define TO_REASON(ID, text, display, id, since, about) { text, display, id, since, about },
#include "event/reasons.def"
#undef TO_REASON
};

const struct to_reason_info *to_reason_info(enum to_reason reason) {
  return &reasons[reason];
}

enum to_reason to_reason_find(struct to_string text) {
  for (unsigned i = TO_REASON_OTHER + 1; i < TO_REASONS; i++)
    if (strlen(reasons[i].text) == text.len && memcmp(reasons[i].text, text.data, text.len) == 0)
      return (enum to_reason)i;
  return TO_REASON_OTHER;
}

static const struct to_range_info ranges[] = {
#define TO_RANGE(ID, begin, name, id, scope, effect, about)                                        \
  [TO_RANGE_##ID] = { TW_EV_##begin, name, id, TO_RESOURCE_##scope, TO_RESOURCE_##effect, about },
#include "event/ranges.def"
#undef TO_RANGE
};

const struct to_range_info *to_range_info(enum to_range_kind kind) {
  return &ranges[kind];
}

bool to_event_range(const struct to_event *ev, struct to_event_range *out) {
#define RANGE(kind, phase, id, text)                                                               \
  *out = (struct to_event_range){ TO_RANGE_##kind, TO_KIND_RANGE_##phase, (int64_t)(id), text };   \
  return true
  switch (ev->type) {
  case TW_EV_STW_BEGIN: RANGE(STW, BEGIN, ev->g, ev->args[0]);
  case TW_EV_STW_END: RANGE(STW, END, ev->g, ev->args[0]);
  case TW_EV_GC_ACTIVE: RANGE(GC_MARK, ACTIVE, 0, 0);
  case TW_EV_GC_BEGIN: RANGE(GC_MARK, BEGIN, 0, 0);
  case TW_EV_GC_END: RANGE(GC_MARK, END, 0, 0);
  case TW_EV_GC_SWEEP_ACTIVE: RANGE(GC_SWEEP, ACTIVE, ev->args[0], 0);
  case TW_EV_GC_SWEEP_BEGIN: RANGE(GC_SWEEP, BEGIN, ev->p, 0);
  case TW_EV_GC_SWEEP_END: RANGE(GC_SWEEP, END, ev->p, 0);
  case TW_EV_GC_MARK_ASSIST_ACTIVE: RANGE(GC_MARK_ASSIST, ACTIVE, ev->args[0], 0);
  case TW_EV_GC_MARK_ASSIST_BEGIN: RANGE(GC_MARK_ASSIST, BEGIN, ev->g, 0);
  case TW_EV_GC_MARK_ASSIST_END: RANGE(GC_MARK_ASSIST, END, ev->g, 0);
  case TW_EV_GO_SYSCALL_BEGIN: RANGE(SYSCALL, BEGIN, ev->g, 0);
  case TW_EV_GO_SYSCALL_END:
  case TW_EV_GO_SYSCALL_END_BLOCKED:
  case TW_EV_GO_DESTROY_SYSCALL: RANGE(SYSCALL, END, ev->g, 0);
  case TW_EV_GO_CREATE_SYSCALL: RANGE(SYSCALL, BEGIN, ev->args[0], 0);
  case TW_EV_USER_REGION_BEGIN: RANGE(REGION, BEGIN, ev->g, ev->args[1]);
  case TW_EV_USER_REGION_END: RANGE(REGION, END, ev->g, ev->args[1]);
  default: return false;
  }
#undef RANGE
}

enum to_metric to_event_metric(const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_PROCS_CHANGE: return TO_METRIC_GOMAXPROCS;
  case TW_EV_HEAP_ALLOC: return TO_METRIC_HEAP_ALLOC;
  default: return TO_METRIC_HEAP_GOAL;
  }
}

const char *to_metric_name(enum to_metric metric) {
  static const char *const names[] = {
    [TO_METRIC_GOMAXPROCS] = "/sched/gomaxprocs:threads",
    [TO_METRIC_HEAP_ALLOC] = "/memory/classes/heap/objects:bytes",
    [TO_METRIC_HEAP_GOAL] = "/gc/heap/goal:bytes",
  };
  return names[metric];
}
