/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with libtraceagent.a inside: the host (plugin_host.c) knows nothing of the agent. */
#include <stddef.h>

#include "traceprobe.h"

int plugin_begin(const char *server, const char *certs, int hz);
void plugin_event(void);
int plugin_end(int deadline_ms);

static void pack(void) {}

static void look(void *self, const struct ta_call *call) {
  (void)self;
  (void)call;
}

static struct ta_tracepoint at = { .module = "plugin", .name = "event", .pack = pack };
static struct ta_probe probe;

int plugin_begin(const char *server, const char *certs, int hz) {
  struct ta_forward_config where = { .server = server, .certs = certs, .service = "plugin" };
  struct ta_emit_config how = { .generation_ms = 50, .samples_hz = (unsigned)hz };
  int error = ta_emit_start(&where, &how);

  if (error != TA_OK) return error;
  ta_lock();
  error = ta_call_attach(NULL, &at, &probe, look, NULL);
  ta_unlock();
  return error;
}

/* Passes a tracepoint that has a probe, and emits an event. */
void plugin_event(void) {
  struct ta_passing here = TA_PASSING;

  ta_passing_begin(&at, &here);
  ta_passing_end(&here);
  ta_region_begin(ta_name_of("plugin"), 0);
  ta_region_end();
}

int plugin_end(int deadline_ms) {
  ta_lock();
  ta_probe_detach(&probe);
  ta_unlock();
  return ta_emit_stop(deadline_ms);
}
