/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an ordered event: its kind, the resource that changes its state, the range or metric.
 *
 * The terms are those of Go's public reader and its documentation. Names, numbers and meaning of kinds,
 * states, ranges and reasons never change (requirement I21); new ones are added at the end. All functions
 * here use a single event and are O(1); see online/spans/spans.h for what depends on earlier events.
 */
#ifndef TO_EVENT_VIEW_H
#define TO_EVENT_VIEW_H

#include "online/event/generation.h"

enum to_event_kind {
  TO_KIND_BAD,
  TO_KIND_SYNC,
  TO_KIND_METRIC,
  TO_KIND_LABEL,
  TO_KIND_STACK_SAMPLE,
  TO_KIND_RANGE_BEGIN,
  TO_KIND_RANGE_ACTIVE, /* already open when a generation begins */
  TO_KIND_RANGE_END,
  TO_KIND_TASK_BEGIN,
  TO_KIND_TASK_END,
  TO_KIND_REGION_BEGIN,
  TO_KIND_REGION_END,
  TO_KIND_LOG,
  TO_KIND_TRANSITION,
  TO_KIND_EXPERIMENTAL,
};
enum to_event_kind to_event_kind(const struct to_event *ev);
const char *to_event_kind_name(enum to_event_kind kind); /* "StateTransition" */

#define TO_NO_STACK UINT64_MAX
/* Returns the id of the stack of the event's context, or TO_NO_STACK. */
uint64_t to_event_stack(const struct to_event *ev);

enum to_resource {
  TO_RESOURCE_NONE,
  TO_RESOURCE_GOROUTINE,
  TO_RESOURCE_PROC,
  TO_RESOURCE_THREAD,
  TO_RESOURCE_PROCESS
};
const char *to_resource_name(enum to_resource resource); /* "Goroutine" */

/* A change of state of a goroutine or a proc. */
struct to_transition {
  enum to_resource resource;
  int64_t id;
  uint8_t from, to; /* enum to_go_state, enum to_proc_state */
  uint64_t reason;  /* string id of the reason why it stopped running, or 0 */
  uint64_t stack;   /* of the resource itself: id, or TO_NO_STACK */
};
/* For events of kind TRANSITION. */
void to_event_transition(const struct to_event *ev, struct to_transition *out);
const char *to_state_name(enum to_resource resource, uint8_t state); /* "Runnable" */

/* The region ended by an event, in a trace read with TO_READER_PAST_ANNOTATIONS. */
enum to_nesting {
  TO_NESTED,       /* the innermost region of the goroutine, or one that began before the trace */
  TO_MISNESTED,    /* not the innermost: all regions of the goroutine are dropped */
  TO_NESTING_LOST, /* no region is open, after regions were dropped */
};

/* A task, a region or a log message of the program. */
struct to_user_event {
  uint64_t task, parent; /* parent: of tasks, or TO_NO_TASK */
  uint64_t name, text;   /* string ids: type of the task or region, category and message of a log */
  bool name_is_extra;    /* name is for to_generation_extra_string() */
  uint64_t nesting;      /* enum to_nesting; of an end of a region */
};
/* For events of kinds TASK_*, REGION_* and LOG. */
void to_event_user(const struct to_event *ev, struct to_user_event *out);

enum to_reason {
  TO_REASON_OTHER,
#define TO_REASON(ID, ...) TO_REASON_##ID,
#include "online/event/reasons.def"
#undef TO_REASON
  TO_REASONS
};
enum to_wait_class {
  TO_WAIT_OTHER,
  TO_WAIT_SYNC, /* a mutex, a condition, a group */
  TO_WAIT_CHAN, /* a channel, a select */
  TO_WAIT_NET,
  TO_WAIT_SLEEP,
  TO_WAIT_GC,
  TO_WAIT_CLASSES
};
const char *to_wait_class_name(enum to_wait_class which); /* "sync" */
struct to_reason_info {
  const char *text;    /* in the trace; NULL: OTHER */
  const char *display; /* shown to users: "I/O wait" for "network" */
  const char *id;      /* canonical */
  unsigned since;      /* first Go 1.N that writes it; 0: only the agent for C */
  enum to_wait_class wait_class;
  const char *about;
};
const struct to_reason_info *to_reason_info(enum to_reason reason);
/* Compares texts: find a generation's reasons once, by string id (online/spans/spans.h does). */
enum to_reason to_reason_find(struct to_string text);

enum to_range_kind {
#define TO_RANGE(ID, ...) TO_RANGE_##ID,
#include "online/event/ranges.def"
#undef TO_RANGE
  TO_RANGES
};
struct to_range_info {
  uint8_t begin;                  /* enum tw_event */
  const char *name;               /* in Go's reader */
  const char *id;                 /* canonical */
  enum to_resource scope, effect; /* effect: what the range holds up */
  const char *about;
};
const struct to_range_info *to_range_info(enum to_range_kind kind);

struct to_event_range {
  enum to_range_kind kind;
  enum to_event_kind
      phase;     /* RANGE_BEGIN, RANGE_ACTIVE or RANGE_END, of system calls and regions, too */
  int64_t id;    /* of its scope's goroutine or proc */
  uint64_t text; /* string id of the reason to stop the world or of a region's name, or 0 */
};
/* Returns false if the event does not begin, restate or end a range. */
bool to_event_range(const struct to_event *ev, struct to_event_range *out);

enum to_metric { TO_METRIC_GOMAXPROCS, TO_METRIC_HEAP_ALLOC, TO_METRIC_HEAP_GOAL };
/* For events of kind METRIC; the value is args[0]. */
enum to_metric to_event_metric(const struct to_event *ev);
const char *to_metric_name(enum to_metric metric); /* as runtime/metrics has it, with its unit */

#endif
