/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints check: checks whether specs of experiments can be registered, and lists their
 * content. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/tracepoints/spec_file.h"
#include "tools/tracepoints/tracepoints.h"

static unsigned events_of(const struct tw_experiments *x, unsigned experiment) {
  unsigned n = 0;

  for (unsigned i = 0; i < x->events; i++) n += x->event[i].experiment == experiment;
  return n;
}

static void put_event_json(const char *experiment, const struct tw_own_event *event) {
  printf("{\"experiment\":\"%s\",\"event\":\"%s\",\"ctx\":\"%s\",\"args\":[", experiment,
         event->spec.name, tw_context_name((enum tw_context)event->context));
  for (unsigned i = 0; i < event->spec.nargs; i++)
    printf("%s{\"name\":\"%s\",\"type\":\"%s\"%s}", i > 0 ? "," : "", event->spec.args[i].label,
           tw_arg_type_name(event->spec.args[i].type),
           (int)i == event->seq_arg ? ",\"orders\":true" : "");
  puts("]}");
}

static void print_experiments(const char *path, const struct tw_experiments *x, bool json) {
  for (unsigned i = 0; i < x->events && json; i++)
    put_event_json(x->experiment[x->event[i].experiment].name, &x->event[i]);
  for (unsigned i = 0; i < x->experiments && !json; i++) {
    unsigned n = events_of(x, i);
    printf("%s: ok: experiment %s, %u event%s\n", path, x->experiment[i].name, n,
           n == 1 ? "" : "s");
  }
}

int tk_tracepoints_check(const struct tk_tracepoints *ask) {
  int code = TK_DONE;

  for (int i = 0; i < ask->files; i++) {
    struct tw_experiments *x = tk_spec_file_read(ask->file[i]);
    if (x == NULL)
      code = TK_FAILED;
    else
      print_experiments(ask->file[i], x, ask->json);
    free(x);
  }
  return code;
}
