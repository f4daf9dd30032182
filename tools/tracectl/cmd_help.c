/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/cmd_help.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/help/verbs.h"
#include "tools/tracectl/remote/client.h"

#define CONNECT_LINE                                                                               \
  "  --server, --certs, --tls-ca, --tls-cert, --tls-key, --tls-crl: 'tracectl help connect'"

void tk_help_overview(FILE *out) {
  fputs("usage: tracectl VERB [OPTION]... [ARGUMENT]...\n", out);
  for (enum tk_purpose purpose = TK_FIRST_DAY; purpose < TK_ITSELF; purpose++) {
    fprintf(out, "\n%s:\n", tk_purpose_text(purpose));
    for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
      if (v->purpose == purpose) fprintf(out, "  %-11s %s\n", v->name, v->about);
  }
  fputs("\n'tracectl help VERB' explains a verb, 'tracectl help connect' how to find a collector.\n"
        "Exit: 0 done, 1 the input is broken or the work failed, 2 usage, 3 a stated condition is "
        "met,\n"
        "4 data is incomplete and --strict was given, 130 interrupted.\n",
        out);
}

void tk_help_verb(const struct tk_verb *verb) {
  if (verb->run != NULL) printf("usage: tracectl %s %s\n\n", verb->name, verb->args);
  puts(verb->about);
  if (!tk_option_is_end(verb->options)) puts("\nOptions:");
  tk_options_print(verb->options, verb->run != NULL ? tk_client_options : NULL, CONNECT_LINE);
  if (*verb->notes != '\0') putchar('\n');
  if (*verb->notes != '\0') tk_help_words(verb->notes, 0);
  if (verb->run != NULL) puts("\nExamples:");
  for (const struct tk_example *e = tk_examples; e->verb != NULL; e++)
    if (strcmp(e->verb, verb->name) == 0) printf("  %s\n      %s\n", e->command, e->about);
}

/* Names that other programs have for it. */
static const char *command_meant(const char *name) {
  static const struct {
    const char *name, *command;
  } guesses[] = { { "ls", "list" },
                  { "get", "fetch" },
                  { "download", "fetch" },
                  { "export", "convert" },
                  { "sql", "query" },
                  { "analyze", "report" },
                  { "watch", "top" },
                  { "alerts", "findings" },
                  { "pprof", "report KIND FILE --pprof OUT" },
                  { "print", "cat" },
                  { "version", "--version" },
                  { "-v", "--version" },
                  { "-V", "--version" } };

  for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
    if (strcmp(guesses[i].name, name) == 0) return guesses[i].command;
  return NULL;
}

int tk_help_unknown(const char *name) {
  struct tb_nearest nearest = { .word = name };

  const char *meant = command_meant(name);

  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) tb_nearest_try(&nearest, v->name);
  if (meant == NULL) meant = nearest.best;
  if (meant != NULL)
    fprintf(stderr, "tracectl: no verb \"%s\"; did you mean \"%s\"?\n", name, meant);
  else if (name[0] == '-')
    fprintf(stderr, "tracectl: the verb comes first, its options after it: tracectl VERB %s\n",
            name);
  else
    fprintf(stderr, "tracectl: no verb \"%s\"; 'tracectl help' lists them\n", name);
  return TK_USAGE;
}

static void add_options(json_t *to, const struct tk_option *row, bool connects) {
  for (; !tk_option_is_end(row); row++) {
    if (row->group != NULL) {
      add_options(to, row->group, connects || row->group == tk_client_options);
      continue;
    }
    const char letter[] = { row->letter, '\0' };
    json_array_append_new(to, json_pack("{s:s,s:s,s:s,s:s,s:b}", "letter", letter, "name",
                                        row->name != NULL ? row->name : "", "arg",
                                        row->arg != NULL ? row->arg : "", "about", row->about,
                                        "connects", connects));
  }
}

static int print_json(const struct tk_verb *verb) {
  json_t *options = json_array(), *examples = json_array();

  add_options(options, verb->options, false);
  for (const struct tk_example *e = tk_examples; e->verb != NULL; e++)
    if (strcmp(e->verb, verb->name) == 0)
      json_array_append_new(examples,
                            json_pack("{s:s,s:s}", "command", e->command, "about", e->about));
  json_t *line = json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "verb", verb->name, "purpose",
                           tk_purpose_text(verb->purpose), "args", verb->args, "about", verb->about,
                           "notes", verb->notes, "options", options, "examples", examples);
  if (line == NULL) return tk_fail("help", "out of memory");
  json_dumpf(line, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(line);
  return TK_DONE;
}

static int print_all_json(void) {
  int code = print_json(&tk_help_connect);

  for (const struct tk_verb *v = tk_verbs; code == TK_DONE && v->name != NULL; v++)
    code = print_json(v);
  return code;
}

const struct tk_option tk_help_options[] = {
  TK_OPTION(0, "json", NULL, tk_read_flag, 0, "all verbs with their options, an object a line"),
  { 0 },
};

int tk_cmd_help(int argc, char **argv) {
  bool json = false;
  int code = tk_options_read(argc, argv, tk_help_options, &json);

  if (code != TK_DONE) return code;
  if (argc - optind > (json ? 0 : 1)) return tk_usage("help", "one VERB at a time, --json for all");
  if (json) return print_all_json();
  if (optind == argc) {
    tk_help_overview(stdout);
    return TK_DONE;
  }
  const char *name = argv[optind];
  const struct tk_verb *verb =
      strcmp(name, tk_help_connect.name) == 0 ? &tk_help_connect : tk_verb_find(name);
  if (verb == NULL) return tk_help_unknown(name);
  tk_help_verb(verb);
  return TK_DONE;
}
