/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tracecollectd.
 *
 * Memory    strings are argv's; tc_command_fini() frees the list of them.
 * Errors    are printed to stderr; the result is an exit code.
 */
#ifndef TC_DAEMON_OPTIONS_H
#define TC_DAEMON_OPTIONS_H

#include "collector/daemon/socket_activation.h"
#include "config/table.h"

enum { TC_EXIT_FAILED = 1, TC_EXIT_USAGE = 2 };

struct tc_command {
  const char *config, *ready_file;
  const char **sets;
  int set_count;
  bool check;
  struct tc_activation sockets;
};

/* Returns -1 to go on, or the exit code: the requested text was printed, or could not be printed. */
int tc_command_parse(int argc, char **argv, struct tc_command *out);
void tc_command_fini(struct tc_command *command);

/* Makes the configuration from the file, the environment, the command line and the inherited sockets. */
TB_MUST tb_rc tc_command_configure(const struct tc_command *command, struct tc_config *config,
                                   struct tb_diag *diag);

#endif
