/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints: works with //trace: lines in C sources, and with specs of experiments. */
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracepoints/tracepoints.h"

static const struct work {
  const char *name;
  tk_tracepoints_fn *run;
} works[] = {
  { "gen", tk_tracepoints_gen },
  { "list", tk_tracepoints_list },
  { "check", tk_tracepoints_check },
  { "experiment", tk_tracepoints_experiment },
};

static const struct work *find_work(const char *name) {
  for (size_t i = 0; i < sizeof works / sizeof *works; i++)
    if (strcmp(works[i].name, name) == 0) return &works[i];
  return NULL;
}

#define AT(member) offsetof(struct tk_tracepoints, member)
const struct tk_option tk_tracepoints_options[] = {
  TK_HELP("gen --module NAME FILE...",
          "NAME.trace.h and NAME.trace.c from the //trace: lines of NAME's sources, and "
          "NAME.trace.spec, what they are as an experiment (ta_record_event_attach)"),
  TK_HELP("list FILE...", "what sources declare, or programs, libraries and objects have built in"),
  TK_HELP("check SPEC...", "what experiments and events a spec has, or what is wrong with it"),
  TK_HELP("experiment SPEC", "NAME.experiment.h to emit them typed, NAME.reader.h to read them"),
  TK_OPTION(0, "module", "NAME", tk_read_text, AT(module), "whose events these are"),
  TK_OPTION('o', "output", "DIR", tk_read_text, AT(out),
            "where gen and experiment write; default: here"),
  TK_OPTION('I', NULL, "DIR", tk_read_texts, AT(folders),
            "where gen finds the NAME.trace.h of a //trace:import \"NAME\""),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object an event"),
  { 0 },
};

int tk_cmd_tracepoints(int argc, char **argv) {
  struct tk_tracepoints ask = { .out = "." };
  int code = tk_options_read(argc, argv, tk_tracepoints_options, &ask);

  if (code != TK_DONE) return code;
  if (optind == argc) return tk_usage("tracepoints", "gen, list, check or experiment is required");
  const struct work *work = find_work(argv[optind]);
  if (work == NULL)
    return tk_usage("tracepoints", "'%s' is not one of gen, list, check, experiment", argv[optind]);
  ask.file = argv + optind + 1;
  ask.files = argc - optind - 1;
  if (ask.files == 0) return tk_usage("tracepoints", "%s: FILE is required", work->name);
  return work->run(&ask);
}
