/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs: each has a cmd_NAME.c with function and options, and a row in commands.def. */
#ifndef TK_HELP_COMMANDS_H
#define TK_HELP_COMMANDS_H

#include "tools/tracectl/args/options.h"

typedef int tk_cmd_fn(int argc, char **argv);

#define TK_CMD(name, ...)                                                                          \
  tk_cmd_fn tk_cmd_##name;                                                                         \
  extern const struct tk_option tk_##name##_options[];
#include "tools/tracectl/help/commands.def"
#undef TK_CMD

#endif
