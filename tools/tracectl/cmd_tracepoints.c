/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints: what C sources declare with //trace: lines, and specs of experiments. */
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

int tk_cmd_tracepoints(int argc, char **argv) {
  static const struct option options[] = { { "module", required_argument, NULL, 'm' },
                                           { "output", required_argument, NULL, 'o' },
                                           { "json", no_argument, NULL, 'j' },
                                           { 0 } };
  struct tk_tracepoints ask = { .out = "." };

  for (int c; (c = tk_option_next(argc, argv, "o:I:", options)) != -1;) {
    switch (c) {
    case 'm': ask.module = optarg; break;
    case 'o': ask.out = optarg; break;
    case 'j': ask.json = true; break;
    case 'I':
      if (ask.folders == TK_FOLDERS_MAX) return tk_usage("tracepoints", "-I is there too often");
      ask.folder[ask.folders++] = optarg;
      break;
    default: return tk_usage_hint("tracepoints");
    }
  }
  if (optind == argc)
    return tk_usage("tracepoints", "what to do is wanted: gen, list, check or experiment");
  const struct work *work = find_work(argv[optind]);
  if (work == NULL)
    return tk_usage("tracepoints", "\"%s\" is none of gen, list, check, experiment", argv[optind]);
  ask.file = argv + optind + 1;
  ask.files = argc - optind - 1;
  if (ask.files == 0) return tk_usage("tracepoints", "%s wants files", work->name);
  return work->run(&ask);
}
