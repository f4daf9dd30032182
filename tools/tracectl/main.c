/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl: one program with a verb for each task. */
#include <errno.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/args/command.h"
#include "tools/tracectl/cmd_help.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/help/verbs.h"

struct tb_mem tk_mem;

static bool wants_help(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

static int run_verb(int argc, char **argv) {
  if (argc < 2) {
    tk_help_overview(stderr);
    return TK_USAGE;
  }
  const char *verb = argv[1];
  if (strcmp(verb, "--version") == 0) {
    puts("tracectl " TC_VERSION);
    return TK_DONE;
  }
  if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
    tk_help_overview(stdout);
    return TK_DONE;
  }
  const struct tk_verb *v = tk_verb_find(verb);
  if (v == NULL) return tk_help_unknown(verb);
  if (wants_help(argc - 1, argv + 1)) {
    tk_help_verb(v);
    return TK_DONE;
  }
  tk_command_init(argc - 1, argv + 1);
  return v->run(argc - 1, argv + 1);
}

static int end_output(int code) {
  errno = 0;
  bool whole = fflush(stdout) == 0 && !ferror(stdout);
  int error = errno;

  if (whole || error == EPIPE || tk_reader_is_gone()) return code;
  fprintf(stderr, "tracectl: cannot write to standard output: %s\n",
          error != 0 ? strerror(error) : "an earlier write failed");
  return code == TK_DONE ? TK_FAILED : code;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* writing to closed sockets and pipes fails with EPIPE */
  /* nng's threads may still end connections while the process exits. */
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  return end_output(run_verb(argc, argv));
}
