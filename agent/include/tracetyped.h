/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent with typed handles: the calls of traceagent.h and traceexperiment.h, with a separate struct type for names,
 * fibers, tasks, events and experiments. If a text, a number or a handle of another type is passed in place of one, the program
 * does not compile. Include this header instead of the two, and write zeroes by their names:
 *
 *   static ta_name serve;                           -- zeroed: none
 *
 *   serve = ta_name_of("serve");
 *   ta_region_begin(serve, TA_NO_TASK);             -- ta_region_begin("serve", 0) does not compile
 *   ta_wait_begin(TA_WAIT_MUTEX);
 *   ta_experiment_emit(hit, ta_of_name(key), ta_of_number(bytes), TA_NO_VALUE, TA_NO_VALUE);
 *
 * An argument of an experiment's event is a ta_value, made of a number, a name, a fiber, TA_SEQUENCE(&sequence) or
 * TA_STACK_HERE. Everything else is as in those two headers.
 *
 * All functions are inline calls of the same library, without cost. Sources with and without this header may be linked
 * into one program and exchange the field `plain`. Headers that tracectl generates take plain handles: include them
 * before this one, and pass `plain`.
 */
#ifndef TRACETYPED_H
#define TRACETYPED_H

#include "traceagent.h"
#include "traceexperiment.h"

typedef struct {
  ta_name plain;
} ta_typed_name;
typedef struct {
  ta_fiber plain;
} ta_typed_fiber;
typedef struct {
  ta_task plain;
} ta_typed_task;
typedef struct {
  ta_event plain;
} ta_typed_event;
typedef struct {
  ta_experiment plain;
} ta_typed_experiment;
typedef struct {
  uint64_t plain;
} ta_value;

#define TA_TYPED(type, name)                                                                       \
  TA_INLINE type ta_typed_of_##name(uint64_t plain) {                                              \
    type typed = { 0 };                                                                            \
    typed.plain = (__typeof__(typed.plain))plain;                                                  \
    return typed;                                                                                  \
  }
TA_TYPED(ta_typed_name, name)
TA_TYPED(ta_typed_fiber, fiber)
TA_TYPED(ta_typed_task, task)
TA_TYPED(ta_typed_event, event)
TA_TYPED(ta_typed_experiment, experiment)
TA_TYPED(ta_value, value)
#undef TA_TYPED

/* Arguments of an event. */
TA_INLINE ta_value ta_of_number(uint64_t number) {
  return ta_typed_of_value(number);
}
TA_INLINE ta_value ta_of_name(ta_typed_name name) {
  return ta_typed_of_value(name.plain);
}
TA_INLINE ta_value ta_of_fiber(ta_typed_fiber fiber) {
  return ta_typed_of_value(fiber.plain);
}
TA_INLINE ta_value ta_typed_sequence(ta_sequence *sequence) {
  return ta_typed_of_value(TA_SEQUENCE(sequence));
}

TA_INLINE ta_typed_name ta_typed_name_of(const char *text) {
  return ta_typed_of_name(ta_name_of(text));
}
TA_INLINE void ta_typed_thread_attach(ta_typed_name name) {
  ta_thread_attach(name.plain);
}
TA_INLINE void ta_typed_wait_begin(ta_typed_name reason) {
  ta_wait_begin(reason.plain);
}
TA_INLINE void ta_typed_wait_begin_for(ta_typed_name reason, const void *object) {
  ta_wait_begin_for(reason.plain, object);
}
TA_INLINE ta_typed_fiber ta_typed_fiber_create(ta_typed_name name, int waits) {
  return ta_typed_of_fiber(ta_fiber_create(name.plain, waits));
}
TA_INLINE ta_typed_fiber ta_typed_fiber_self(void) {
  return ta_typed_of_fiber(ta_fiber_self());
}
TA_INLINE void ta_typed_fiber_stack(ta_typed_fiber fiber, const void *low, size_t bytes) {
  ta_fiber_stack(fiber.plain, low, bytes);
}
TA_INLINE void ta_typed_fiber_switch(ta_typed_fiber fiber) {
  ta_fiber_switch(fiber.plain);
}
TA_INLINE void ta_typed_fiber_block(ta_typed_name reason) {
  ta_fiber_block(reason.plain);
}
TA_INLINE void ta_typed_fiber_yield(ta_typed_name reason) {
  ta_fiber_yield(reason.plain);
}
TA_INLINE void ta_typed_fiber_unblock(ta_typed_fiber fiber) {
  ta_fiber_unblock(fiber.plain);
}
TA_INLINE void ta_typed_region_begin(ta_typed_name name, ta_typed_task task) {
  ta_region_begin(name.plain, task.plain);
}
TA_INLINE ta_typed_task ta_typed_task_begin(ta_typed_name type, ta_typed_task parent) {
  return ta_typed_of_task(ta_task_begin(type.plain, parent.plain));
}
TA_INLINE void ta_typed_task_end(ta_typed_task task) {
  ta_task_end(task.plain);
}
TA_INLINE void ta_typed_log(ta_typed_task task, ta_typed_name key, const char *text) {
  ta_log(task.plain, key.plain, text);
}
TA_INLINE void ta_typed_label(ta_typed_name label) {
  ta_label(label.plain);
}
TA_INLINE void ta_typed_pause_begin(ta_typed_name kind) {
  ta_pause_begin(kind.plain);
}
TA_INLINE int ta_typed_experiment_register(const char *spec, ta_typed_experiment *out,
                                           ta_typed_event *events, unsigned n) {
  return ta_experiment_register(spec, out == NULL ? NULL : &out->plain,
                                events == NULL ? NULL : &events->plain, n);
}
TA_INLINE void ta_typed_experiment_emit(ta_typed_event event, ta_value a, ta_value b, ta_value c,
                                        ta_value d) {
  ta_experiment_emit(event.plain, a.plain, b.plain, c.plain, d.plain);
}
TA_INLINE void ta_typed_experiment_write(ta_typed_experiment experiment, ta_typed_name stream,
                                         const void *bytes, size_t n) {
  ta_experiment_write(experiment.plain, stream.plain, bytes, n);
}
TA_INLINE void ta_typed_emit_blob(ta_typed_event event, ta_typed_name stream, const void *bytes,
                                  size_t n, ta_value a, ta_value b, ta_value c, ta_value d) {
  ta_emit_blob(event.plain, stream.plain, bytes, n, a.plain, b.plain, c.plain, d.plain);
}
TA_INLINE void ta_typed_memory_tell(enum ta_memory what, const void *at, size_t bytes,
                                    ta_typed_name type) {
  ta_memory_tell(what, at, bytes, type.plain);
}

/* After this the plain names are the typed ones. */
#define TA_NO_NAME    ta_typed_of_name(0)
#define TA_NO_FIBER   ta_typed_of_fiber(0) /* to switch to: the thread itself */
#define TA_NO_TASK    ta_typed_of_task(0)
#define TA_NO_VALUE   ta_typed_of_value(0)
#define TA_WAIT_MUTEX ta_typed_of_name(TA_WAIT_MUTEX)
#define TA_WAIT_COND  ta_typed_of_name(TA_WAIT_COND)
#define TA_WAIT_JOIN  ta_typed_of_name(TA_WAIT_JOIN)
#define TA_WAIT_SLEEP ta_typed_of_name(TA_WAIT_SLEEP)
#define TA_WAIT_POLL  ta_typed_of_name(TA_WAIT_POLL)
#undef TA_SEQUENCE
#define TA_SEQUENCE(s) ta_typed_sequence(s)
#undef TA_STACK_HERE
#define TA_STACK_HERE ta_typed_of_value(UINT32_MAX)
#define ta_name       ta_typed_name
#define ta_fiber      ta_typed_fiber
#define ta_task       ta_typed_task
#define ta_event      ta_typed_event
#define ta_experiment ta_typed_experiment
#undef ta_experiment_register
#define ta_name_of             ta_typed_name_of
#define ta_thread_attach       ta_typed_thread_attach
#define ta_wait_begin          ta_typed_wait_begin
#define ta_wait_begin_for      ta_typed_wait_begin_for
#define ta_fiber_create        ta_typed_fiber_create
#define ta_fiber_self          ta_typed_fiber_self
#define ta_fiber_stack         ta_typed_fiber_stack
#define ta_fiber_switch        ta_typed_fiber_switch
#define ta_fiber_block         ta_typed_fiber_block
#define ta_fiber_yield         ta_typed_fiber_yield
#define ta_fiber_unblock       ta_typed_fiber_unblock
#define ta_region_begin        ta_typed_region_begin
#define ta_task_begin          ta_typed_task_begin
#define ta_task_end            ta_typed_task_end
#define ta_log                 ta_typed_log
#define ta_label               ta_typed_label
#define ta_pause_begin         ta_typed_pause_begin
#define ta_experiment_register ta_typed_experiment_register
#define ta_experiment_emit     ta_typed_experiment_emit
#define ta_experiment_write    ta_typed_experiment_write
#define ta_emit_blob           ta_typed_emit_blob
#define ta_memory_tell         ta_typed_memory_tell

#endif
