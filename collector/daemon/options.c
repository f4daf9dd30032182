/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

static void print_help(void) {
  fputs("Usage: tracecollectd [OPTION]...\n"
        "Collects Go execution traces, orders and analyses them online, and keeps them.\n"
        "\n"
        "  --config FILE           read the configuration (YAML); none: defaults\n"
        "  --set KEY=VALUE         override a key; may be repeated, the last wins\n"
        "                          TRACECOLLECTD_SET_LISTEN_HTTP=VALUE in the environment does the "
        "same for\n"
        "                          listen.http: it overrides FILE, and --set overrides it\n"
        "  --ready-file FILE       write the real addresses as key=value lines once all are open\n"
        "  --check-config          check the configuration and exit\n"
        "  --print-default-config  print every key with its default and exit\n"
        "  --version               print versions and exit\n"
        "  --help                  this text\n"
        "\n"
        "SIGTERM drains and exits 0; a second one exits at once. SIGHUP reads configuration and\n"
        "certificates again; if either is wrong, all stays as it was.\n"
        "Exit: 0 done, 1 failed, 2 usage.\n",
        stdout);
}

static void print_version(void) {
  printf("tracecollectd %s\n%s\nlibuv %s\n", TC_VERSION, OpenSSL_version(OPENSSL_VERSION),
         uv_version_string());
}

/* A full disk is a failure: a script that asked for the text depends on it. */
static int printed(void) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return 0;
  fprintf(stderr, "tracecollectd: standard output: %s\n", strerror(errno));
  return TC_EXIT_FAILED;
}

int tc_command_parse(int argc, char **argv, struct tc_command *out) {
  enum { CONFIG = 1, SET, READY, CHECK, PRINT, VERSION, HELP };
  static const struct option options[] = {
    { "config", required_argument, NULL, CONFIG },
    { "set", required_argument, NULL, SET },
    { "ready-file", required_argument, NULL, READY },
    { "check-config", no_argument, NULL, CHECK },
    { "print-default-config", no_argument, NULL, PRINT },
    { "version", no_argument, NULL, VERSION },
    { "help", no_argument, NULL, HELP },
    { 0 },
  };
  int option;

  *out = (struct tc_command){ .sets = calloc((size_t)argc, sizeof(char *)) };
  if (out->sets == NULL) {
    fputs("tracecollectd: out of memory\n", stderr);
    return TC_EXIT_FAILED;
  }
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case CONFIG: out->config = optarg; break;
    case SET: out->sets[out->set_count++] = optarg; break;
    case READY: out->ready_file = optarg; break;
    case CHECK: out->check = true; break;
    case PRINT: tc_config_print_default(stdout); return printed();
    case VERSION: print_version(); return printed();
    case HELP: print_help(); return printed();
    default: fputs("Try 'tracecollectd --help'.\n", stderr); return TC_EXIT_USAGE;
    }
  }
  if (optind == argc) return -1;
  fprintf(stderr, "tracecollectd: '%s' is not an option; try --help\n", argv[optind]);
  return TC_EXIT_USAGE;
}

void tc_command_fini(struct tc_command *command) {
  free(command->sets);
  command->sets = NULL;
}

static tb_rc set_address(const struct tc_socket *socket, const char *key, struct tc_config *config,
                         struct tb_diag *diag) {
  char assignment[TC_SOCKET_ADDRESS_MAX + 32];

  if (socket->fd == 0) return TB_OK;
  snprintf(assignment, sizeof assignment, "%s=%s", key, socket->address);
  return tc_config_set(config, assignment, diag);
}

tb_rc tc_command_configure(const struct tc_command *command, struct tc_config *config,
                           struct tb_diag *diag) {
  if (command->config != NULL) TB_TRY(tc_config_load(config, command->config, diag));
  TB_TRY(tc_config_environment(config, (const char *const *)environ, diag));
  for (int i = 0; i < command->set_count; i++)
    TB_TRY(tc_config_set(config, command->sets[i], diag));
  TB_TRY(set_address(&command->sockets.agents, "listen.agents", config, diag));
  TB_TRY(set_address(&command->sockets.http, "listen.http", config, diag));
  return tc_config_finish(config, diag);
}
