/* SPDX-License-Identifier: Apache-2.0 */
/* The probe that writes an event into the trace: a log of what runs on the thread, its key the event's name. */
#include <stdio.h>

#include "agent/emit/emit.h"
#include "agent/keep.h"
#include "agent/probe/call.h"

/* Apart, since its room is cleared on the way in. */
static __attribute__((noinline)) void write_log(ta_name name, const struct ta_call *call) {
  char text[TW_STRING_BYTES_MAX + 1];

  ta__call_args(call, " ", text, sizeof text);
  ta_log(0, name, text);
}

static void record(void *self, const struct ta_call *call) {
  KEEP_ERRNO;

  if (!ta_is_off()) write_log((ta_name)(uintptr_t)self, call);
}

int ta_record_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                     struct ta_probe *probe) {
  KEEP_ERRNO;
  char name[TW_STRING_BYTES_MAX + 1];

  snprintf(name, sizeof name, "%s.%s", at->module, at->name);
  return ta_call_attach(group, at, probe, record, (void *)(uintptr_t)ta_name_of(name));
}
