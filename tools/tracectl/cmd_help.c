/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/cmd_help.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/help/verbs.h"

void tk_help_overview(FILE *out) {
  fputs("usage: tracectl VERB [OPTION]... [ARGUMENT]...\n\n", out);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
    fprintf(out, "  %-10s %s\n", v->name, v->about);
  fputs(
      "\nExit: 0 done, 1 the input is broken or the work failed, 2 usage, 3 a stated condition is "
      "met,\n"
      "4 data is incomplete and --strict was given, 130 interrupted.\n",
      out);
}

void tk_help_verb(const struct tk_verb *verb) {
  printf("usage: tracectl %s %s\n\n%s\n", verb->name, verb->args, verb->about);
  if (verb->options[0] != '\0') printf("\nOptions:\n%s", verb->options);
  puts("\nExamples:");
  for (const struct tk_example *e = tk_examples; e->verb != NULL; e++)
    if (strcmp(e->verb, verb->name) == 0) printf("  %s\n      %s\n", e->command, e->about);
}

int tk_help_unknown(const char *name) {
  struct tb_nearest nearest = { .word = name };

  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) tb_nearest_try(&nearest, v->name);
  if (nearest.best != NULL)
    fprintf(stderr, "tracectl: no verb \"%s\"; did you mean \"%s\"?\n", name, nearest.best);
  else
    fprintf(stderr, "tracectl: no verb \"%s\"; 'tracectl help' lists them\n", name);
  return TK_USAGE;
}

int tk_cmd_help(int argc, char **argv) {
  static const struct option none[] = { { 0 } };

  if (tk_option_next(argc, argv, "", none) != -1) return tk_usage_hint("help");
  if (argc - optind > 1) return tk_usage("help", "one VERB at a time");
  if (optind == argc) {
    tk_help_overview(stdout);
    return TK_DONE;
  }
  const struct tk_verb *verb = tk_verb_find(argv[optind]);
  if (verb == NULL) return tk_help_unknown(argv[optind]);
  tk_help_verb(verb);
  return TK_DONE;
}
