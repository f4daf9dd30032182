/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl: one program, one verb each. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/client.h" /* TK_CLIENT_HELP, TK_SELECTOR_HELP */
#include "tools/tracectl/tracectl.h"

struct command {
  const char *name;
  tk_cmd_fn *run;
  const char *args, *about, *options;
};

#define TK_CMD(name, fn, args, about, ...) { name, fn, args, about, "" __VA_ARGS__ },
static const struct command commands[] = {
#include "tools/tracectl/commands.def"
  { NULL, NULL, NULL, NULL, NULL },
};
#undef TK_CMD

struct tb_mem tk_mem;

static const struct command *find_command(const char *name) {
  for (const struct command *c = commands; c->name != NULL; c++)
    if (strcmp(c->name, name) == 0) return c;
  return NULL;
}

static void print_overview(FILE *out) {
  fputs("usage: tracectl VERB [OPTION]... [ARGUMENT]...\n\n", out);
  for (const struct command *c = commands; c->name != NULL; c++)
    fprintf(out, "  %-10s %s\n", c->name, c->about);
  fputs("  help       Explain a verb: tracectl help VERB.\n\n"
        "Exit: 0 done, 1 the input is broken or the work failed, 2 usage, 3 a stated condition is "
        "met,\n"
        "4 data is incomplete and --strict was given, 130 interrupted.\n",
        out);
}

static void print_help(const struct command *c) {
  printf("usage: tracectl %s %s\n\n%s\n", c->name, c->args, c->about);
  if (c->options[0] != '\0') printf("\nOptions:\n%s", c->options);
}

static int unknown_verb(const char *name) {
  fprintf(stderr, "tracectl: no verb \"%s\"; 'tracectl help' lists them\n", name);
  return TK_USAGE;
}

static int help(int argc, char **argv) {
  if (argc < 2) {
    print_overview(stdout);
    return TK_DONE;
  }
  const struct command *c = find_command(argv[1]);
  if (c == NULL) return unknown_verb(argv[1]);
  print_help(c);
  return TK_DONE;
}

static bool wants_help(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    print_overview(stderr);
    return TK_USAGE;
  }
  const char *verb = argv[1];
  if (strcmp(verb, "--version") == 0) {
    puts("tracectl " TC_VERSION);
    return TK_DONE;
  }
  if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
    return help(argc - 1, argv + 1);

  const struct command *c = find_command(verb);
  if (c == NULL) return unknown_verb(verb);
  if (wants_help(argc - 1, argv + 1)) {
    print_help(c);
    return TK_DONE;
  }
  return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* sockets and pipes answer EPIPE instead */
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);

  int code = run(argc, argv);
  errno = 0;
  if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE && errno != 0) {
    fprintf(stderr, "tracectl: cannot write to standard output: %s\n", strerror(errno));
    if (code == TK_DONE) code = TK_FAILED;
  }
  return code;
}
