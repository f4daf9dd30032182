/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl state --at T [FILE... | SELECTOR...]: every goroutine of one moment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/state/print.h"
#include "tools/tracectl/term/tracectl.h"

enum { OPT_AT = 1, OPT_JSON, OPT_TOP };

/* How far back a collector's generations are read, to know since when. */
#define BACK_NS UINT64_C(10000000000)

struct state_options {
  struct tk_inputs inputs;
  struct tk_moment_ask ask;
  bool has_at, json;
  size_t rows;
};

static int take_at(struct state_options *o, const char *value) {
  struct tb_diag diag;
  char *end;

  tb_diag_clear(&diag);
  o->has_at = true;
  errno = 0;
  o->ask.at = strtoll(value, &end, 10);
  if (value[0] >= '0' && value[0] <= '9' && *end == 0 && errno == 0) return TK_DONE;
  o->ask.is_wall = true;
  if (tc_time_parse(value, tc_wall_ns(), &diag, &o->ask.wall_ns) == TB_OK) return TK_DONE;
  return tk_usage("state", "--at: %s", diag.text);
}

static int take_option(struct state_options *o, int option, const char *value) {
  switch (option) {
  case OPT_AT: return take_at(o, value);
  case OPT_TOP: return tk_rows_parse("state", value, &o->rows) ? TK_DONE : TK_USAGE;
  case OPT_JSON: o->json = true; return TK_DONE;
  default: return tk_inputs_option(&o->inputs, option, value);
  }
}

/* Of a collector's streams the generations around the moment, and some before. */
static void choose_time(struct state_options *o) {
  struct tk_selector *s = &o->inputs.selector;
  bool is_chosen = s->since_wall_ns != 0 || s->last_ns != 0 || s->first_gen != 0;

  if (!o->inputs.is_remote || !o->ask.is_wall || is_chosen) return;
  s->since_wall_ns = o->ask.wall_ns > BACK_NS ? o->ask.wall_ns - BACK_NS : 1;
  s->until_wall_ns = o->ask.wall_ns;
}

static int print(const struct state_options *o, const struct tk_moment *m, const char *name) {
  if (!o->json) tk_moment_print(m, name, o->rows);
  return !o->json || tk_moment_print_json(m, name) ? TK_DONE : tk_fail("state", "out of memory");
}

/* One after the other. A stream may have several runs, and streams other times: one of them has the moment. */
static int state_of_each(const struct state_options *o) {
  char error[TK_QUERY_ERROR] = "";
  int code = TK_DONE;
  size_t found = 0;

  for (size_t i = 0; code == TK_DONE && i < o->inputs.n; i++) {
    const struct tk_place *place = &o->inputs.place[i];
    struct tk_moment moment;
    if (tk_moment_find(place, &o->ask, &moment, error)) {
      if (found++ > 0 && !o->json) putchar('\n');
      code = print(o, &moment, place->name);
    }
    tk_moment_fini(&moment);
  }
  if (found > 0) return code;
  return error[0] == 0 ? TK_FAILED : tk_fail("state", "%s", error);
}

static int state(struct state_options *o, char **files, int n_files) {
  if (!o->has_at)
    return tk_usage(
        "state",
        "--at T is wanted: RFC 3339, -5s, now, @UNIX, or nanoseconds on the trace's own clock");
  choose_time(o);
  int code = tk_inputs_open(&o->inputs, files, n_files);
  if (code == TK_DONE) code = state_of_each(o);
  tk_inputs_close(&o->inputs);
  return code;
}

int tk_cmd_state(int argc, char **argv) {
  static const struct option options[] = {
    { "at", required_argument, NULL, OPT_AT },
    { "json", no_argument, NULL, OPT_JSON },
    { "top", required_argument, NULL, OPT_TOP },
    TK_INPUTS_OPTIONS,
    { 0 },
  };
  struct state_options o = { .inputs = { .verb = "state" }, .rows = 50 };
  int code;

  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;)
    if ((code = take_option(&o, c, optarg)) != TK_DONE) return code;
  return state(&o, argv + optind, argc - optind);
}
