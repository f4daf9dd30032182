/* SPDX-License-Identifier: Apache-2.0 */
/* Two probes that write a passed tracepoint into the trace. One writes a log message of the running goroutine, with the
 * tracepoint's name as its key; the other an event of the experiment that the module's spec describes. In both, the stack
 * begins at the tracepoint. */
#include <stdio.h>
#include <string.h>

#include "agent/api/forward.h"
#include "agent/emit/events/experiments.h"
#include "agent/emit/stacks/frames.h"
#include "agent/host/keep.h"
#include "agent/probe/call.h"
#include "traceexperiment.h"

static void begin_stacks(void) {
  const struct ta_passing *here = ta__passing();

  ta_origin = (struct ta_origin){ here->pc, here->frame };
}

static void end_stacks(void) {
  ta_origin = (struct ta_origin){ NULL, NULL };
}

/* Not inlined, because its buffer is cleared at its begin (-ftrivial-auto-var-init). */
static __attribute__((noinline)) void write_log(ta_name name, const struct ta_call *call) {
  char text[TW_STRING_BYTES_MAX + 1];

  ta__call_args(call, " ", text, sizeof text);
  begin_stacks();
  ta_log(0, name, text);
  end_stacks();
}

static void record(void *self, const struct ta_call *call) {
  KEEP_ERRNO;

  if (!ta_is_off()) write_log((ta_name)(uintptr_t)self, call);
}

int ta_record_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                     struct ta_probe *probe) {
  KEEP_ERRNO;
  char name[TW_STRING_BYTES_MAX + 1];

  if (at == NULL || at->module == NULL || at->name == NULL) return TA_E_MISUSE;
  snprintf(name, sizeof name, "%s.%s", at->module, at->name);
  return ta_call_attach(group, at, probe, record, (void *)(uintptr_t)ta_name_of(name));
}

static struct ta_own_arg own_arg(const struct ta_arg *arg) {
  struct ta_own_arg own = { .number = arg->is.u };

  if (arg->kind == TA_ARG_TEXT) own.text = arg->is.text;
  return own;
}

static __attribute__((noinline)) void write_rest(uint8_t event, const struct ta_call *call,
                                                 struct ta_own_arg *args) {
  char text[TW_STRING_BYTES_MAX + 1];

  ta__call_args_from(call, TW_TIMED_ARGS_MAX - 1, " ", text, sizeof text);
  args[TW_TIMED_ARGS_MAX - 1] = (struct ta_own_arg){ .text = text };
  ta_own_put(event, args);
}

static void record_event(void *self, const struct ta_call *call) {
  KEEP_ERRNO;
  struct ta_own_arg args[TW_TIMED_ARGS_MAX] = { 0 };
  uint8_t event = (uint8_t)(uintptr_t)self;

  if (ta_is_off()) return;
  for (unsigned i = 0; i < call->n && i < TW_TIMED_ARGS_MAX; i++) args[i] = own_arg(&call->args[i]);
  begin_stacks();
  if (call->n > TW_TIMED_ARGS_MAX)
    write_rest(event, call, args);
  else
    ta_own_put(event, args);
  end_stacks();
}

int ta_record_event_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                           struct ta_probe *probe) {
  KEEP_ERRNO;
  ta_event events[TW_OWN_EVENTS_MAX];

  if (at == NULL || at->spec == NULL) return TA_E_MISUSE;
  if (at->event == TA_TRACE_NO_EVENT)
    return ta_forward_fault(TA_E_CONFIG, "a name of the event or its module is too long");
  if (at->event >= at->spec->events) return TA_E_MISUSE;
  int error = ta_experiment_register(at->spec->text, NULL, events, at->spec->events);
  if (error != TA_OK) return error;
  return ta_call_attach(group, at, probe, record_event, (void *)(uintptr_t)events[at->event]);
}
