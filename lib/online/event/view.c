/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/view.h"

#include <stddef.h>
#include <string.h>

#include "online/event/status.h"
#include "wire/experiments.h"

/* The place of an id, a string or a stack: the offset of an 8-byte field of struct to_event. Offset 0 is the time,
 * so 0 means none. */
enum place {
  NONE,
  P = offsetof(struct to_event, p),
  G = offsetof(struct to_event, g),
  A0 = offsetof(struct to_event, args[0]),
  A1 = offsetof(struct to_event, args[1]),
  A2 = offsetof(struct to_event, args[2]),
  A3 = offsetof(struct to_event, args[3]),
};
_Static_assert(offsetof(struct to_event, time) == 0, "place 0 is never read");

#define EVEN_0(place) ((place) | 1) /* fields begin at multiples of 8 */

enum { BY_STATUS = UINT8_MAX }; /* a state that the event itself names */
#define TO_GO_STATUS   BY_STATUS
#define TO_PROC_STATUS BY_STATUS

/* A row of meanings.def; the columns of the last line are enum place. */
struct meaning {
  uint8_t kind; /* enum to_event_kind */
  uint8_t resource, from, to;
  uint8_t range, metric;
  uint8_t id, reason, stack, text, parent, name; /* id: of the resource, the range or the task */
};

static const struct meaning meanings[UINT8_MAX + 1] = {
#define GO(event, at, before, after, why, place)                                                   \
  [TW_EV_##event] = { .kind = TO_KIND_TRANSITION,                                                  \
                      .resource = TO_RESOURCE_GOROUTINE,                                           \
                      .from = TO_GO_##before,                                                      \
                      .to = TO_GO_##after,                                                         \
                      .id = at,                                                                    \
                      .reason = why,                                                               \
                      .stack = place },
#define PROC(event, at, before, after)                                                             \
  [TW_EV_##event] = { .kind = TO_KIND_TRANSITION,                                                  \
                      .resource = TO_RESOURCE_PROC,                                                \
                      .from = TO_PROC_##before,                                                    \
                      .to = TO_PROC_##after,                                                       \
                      .id = at },
#define RANGE(event, phase, kind_of_range, at, string)                                             \
  [TW_EV_##event] = {                                                                              \
    .kind = TO_KIND_RANGE_##phase, .range = TO_RANGE_##kind_of_range, .id = at, .text = string     \
  },
#define USER(event, which, its_task, its_parent, its_name, string)                                 \
  [TW_EV_##event] = { .kind = TO_KIND_##which,                                                     \
                      .id = its_task,                                                              \
                      .parent = its_parent,                                                        \
                      .name = its_name,                                                            \
                      .text = string },
#define METRIC(event, which)                                                                       \
  [TW_EV_##event] = { .kind = TO_KIND_METRIC, .metric = TO_METRIC_##which },
#define OTHER(event, which) [TW_EV_##event] = { .kind = TO_KIND_##which },
#include "online/event/meanings.def"
#undef GO
#undef PROC
#undef RANGE
#undef USER
#undef METRIC
#undef OTHER
  [TW_EV_SPAN... UINT8_MAX] = { .kind = TO_KIND_EXPERIMENTAL },
};

static const struct meaning *meaning_of(const struct to_event *ev) {
  return &meanings[ev->type];
}

static uint64_t field(const struct to_event *ev, unsigned place) {
  uint64_t value;

  memcpy(&value, (const char *)ev + place, sizeof value);
  return value;
}

static uint64_t field_or(const struct to_event *ev, unsigned place, uint64_t none) {
  return place == NONE ? none : field(ev, place);
}

enum to_event_kind to_event_kind(const struct to_event *ev) {
  return (enum to_event_kind)meaning_of(ev)->kind;
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
    return ev->args[0]; /* the empty stack, too: it prints a heading */
  /* The context's own stack is the last argument, if an event has one. */
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

static void go_states(const struct to_event *ev, struct to_transition *out) {
  out->from = (uint8_t)(ev->args[2] >> 32);
  out->to = to__go_state_of((uint32_t)ev->args[2]);
}

static void proc_states(const struct to_event *ev, struct to_transition *out) {
  bool steal = ev->type == TW_EV_PROC_STEAL;

  out->from = steal ? to__proc_state_of(ev->args[3]) : (uint8_t)ev->args[2];
  out->to = steal ? TO_PROC_IDLE : to__proc_state_of(ev->args[1] & 0xff);
}

static uint64_t stack_at(const struct to_event *ev, unsigned place) {
  uint64_t id = place == NONE ? 0 : field(ev, place & ~1u);

  return id == 0 && (place & 1) == 0 ? TO_NO_STACK : id;
}

void to_event_transition(const struct to_event *ev, struct to_transition *out) {
  const struct meaning *row = meaning_of(ev);

  out->resource = (enum to_resource)row->resource;
  out->id = (int64_t)field(ev, row->id);
  out->from = row->from;
  out->to = row->to;
  out->reason = field_or(ev, row->reason, 0);
  out->stack = stack_at(ev, row->stack);
  if (TB_LIKELY(row->from != BY_STATUS)) return;
  if (row->resource == TO_RESOURCE_PROC)
    proc_states(ev, out);
  else
    go_states(ev, out);
}

void to_event_user(const struct to_event *ev, struct to_user_event *out) {
  const struct meaning *row = meaning_of(ev);

  *out = (struct to_user_event){ .task = field(ev, row->id),
                                 .parent = field_or(ev, row->parent, TO_NO_TASK),
                                 .name = field_or(ev, row->name, 0),
                                 .name_is_extra = row->kind == TO_KIND_TASK_END,
                                 .text = field_or(ev, row->text, 0),
                                 .nesting =
                                     row->kind == TO_KIND_REGION_END ? ev->args[3] : TO_NESTED };
}

static const struct to_reason_info reasons[] = {
  [TO_REASON_OTHER] = { NULL, "other", "/other", 22, TO_WAIT_OTHER,
                        "A reason this program does not know." },
#define TO_REASON(ID, text, display, id, since, wait, about)                                       \
  { text, display, id, since, TO_WAIT_##wait, about },
#include "online/event/reasons.def"
#undef TO_REASON
};

const struct to_reason_info *to_reason_info(enum to_reason reason) {
  return &reasons[reason];
}

const char *to_wait_class_name(enum to_wait_class which) {
  static const char *const names[TO_WAIT_CLASSES] = {
    [TO_WAIT_OTHER] = "other", [TO_WAIT_SYNC] = "sync",   [TO_WAIT_CHAN] = "chan",
    [TO_WAIT_NET] = "net",     [TO_WAIT_SLEEP] = "sleep", [TO_WAIT_GC] = "gc",
  };
  return names[which];
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
#include "online/event/ranges.def"
#undef TO_RANGE
};

const struct to_range_info *to_range_info(enum to_range_kind kind) {
  return &ranges[kind];
}

/* A goroutine's state Syscall is reported as a range of the same length. A status event begins no range. */
static bool syscall_range(const struct to_event *ev, const struct meaning *row,
                          struct to_event_range *out) {
  bool begins = row->to == TO_GO_SYSCALL, ends = row->from == TO_GO_SYSCALL;

  if (row->resource != TO_RESOURCE_GOROUTINE || (!begins && !ends)) return false;
  *out =
      (struct to_event_range){ TO_RANGE_SYSCALL, begins ? TO_KIND_RANGE_BEGIN : TO_KIND_RANGE_END,
                               (int64_t)field_or(ev, row->id, 0), 0 };
  return true;
}

bool to_event_range(const struct to_event *ev, struct to_event_range *out) {
  const struct meaning *row = meaning_of(ev);

  switch (row->kind) {
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END:
    *out = (struct to_event_range){ (enum to_range_kind)row->range, (enum to_event_kind)row->kind,
                                    (int64_t)field_or(ev, row->id, 0), field_or(ev, row->text, 0) };
    return true;
  case TO_KIND_REGION_BEGIN:
  case TO_KIND_REGION_END:
    *out = (struct to_event_range){ TO_RANGE_REGION,
                                    row->kind == TO_KIND_REGION_BEGIN ? TO_KIND_RANGE_BEGIN
                                                                      : TO_KIND_RANGE_END,
                                    ev->g, field_or(ev, row->name, 0) };
    return true;
  case TO_KIND_TRANSITION: return syscall_range(ev, row, out);
  default: return false;
  }
}

enum to_metric to_event_metric(const struct to_event *ev) {
  return (enum to_metric)meaning_of(ev)->metric;
}

const char *to_metric_name(enum to_metric metric) {
  static const char *const names[] = {
    [TO_METRIC_GOMAXPROCS] = "/sched/gomaxprocs:threads",
    [TO_METRIC_HEAP_ALLOC] = "/memory/classes/heap/objects:bytes",
    [TO_METRIC_HEAP_GOAL] = "/gc/heap/goal:bytes",
  };
  return names[metric];
}
