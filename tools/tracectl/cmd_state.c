/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl state --at T [FILE... | SELECTOR...]: the state of every goroutine at one moment. */
#include <stdio.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/state/print.h"
#include "tools/tracectl/term/tracectl.h"

/* Read a collector's generations from this long before, for the begin of each state. */
#define BACK_NS UINT64_C(10000000000)

struct state_options {
  struct tk_inputs inputs;
  struct tk_at at;
  bool json;
  unsigned rows;
};

#define AT(member) offsetof(struct state_options, member)
const struct tk_option tk_state_options[] = {
  TK_OPTION(0, "at", "T", tk_read_at, AT(at),
            "RFC 3339, -5s, now, @UNIX, or nanoseconds on the trace's own clock"),
  TK_OPTION(0, "top", "N", tk_read_number, AT(rows),
            "goroutines that are shown, longest in their state first (default 50, 0: all)"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a goroutine, all of them"),
  TK_GROUP(tk_inputs_options, AT(inputs)),
  { 0 },
};

/* For a collector's streams: selects the generations around the moment, and some before. */
static void choose_time(struct state_options *o, bool is_of_files) {
  struct tk_selector *s = &o->inputs.selector;
  bool is_chosen = s->since_wall_ns != 0 || s->last_ns != 0 || s->first_gen != 0;

  if (is_of_files || !o->at.is_wall || is_chosen) return;
  s->since_wall_ns = o->at.wall_ns > BACK_NS ? o->at.wall_ns - BACK_NS : 1;
  s->until_wall_ns = o->at.wall_ns;
}

static int print(const struct state_options *o, const struct tk_moment *m, const char *name) {
  if (!o->json) tk_moment_print(m, name, o->rows);
  return !o->json || tk_moment_print_json(m, name) ? TK_DONE : tk_fail("state", "out of memory");
}

/* A stream may have several runs, and streams other times: the moment is in one of them. */
static int state_of_each(const struct state_options *o) {
  char error[TK_QUERY_ERROR] = "";
  int code = TK_DONE;
  size_t found = 0;

  for (size_t i = 0; code == TK_DONE && i < o->inputs.n; i++) {
    const struct tk_place *place = &o->inputs.place[i];
    struct tk_moment moment;
    if (tk_moment_find(place, &o->at, &moment, error)) {
      if (found++ > 0 && !o->json) putchar('\n');
      code = print(o, &moment, place->name);
    }
    tk_moment_fini(&moment);
  }
  if (found > 0) return code;
  return error[0] == 0 ? TK_FAILED : tk_fail("state", "%s", error);
}

static int state(struct state_options *o, char **files, int n_files) {
  if (!o->at.is_given)
    return tk_usage(
        "state",
        "--at T is required: RFC 3339, -5s, now, @UNIX, or nanoseconds on the trace's own clock");
  choose_time(o, n_files > 0);
  int code = tk_inputs_open(&o->inputs, files, n_files);
  if (code == TK_DONE) code = state_of_each(o);
  tk_inputs_close(&o->inputs);
  return code;
}

int tk_cmd_state(int argc, char **argv) {
  struct state_options o = { .inputs = { .verb = "state" }, .rows = 50 };
  int code = tk_options_read(argc, argv, tk_state_options, &o);

  return code == TK_DONE ? state(&o, argv + optind, argc - optind) : code;
}
