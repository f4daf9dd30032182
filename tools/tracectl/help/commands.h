/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs' functions: one cmd_<name>.c each, one row in commands.def. */
#ifndef TK_HELP_COMMANDS_H
#define TK_HELP_COMMANDS_H

typedef int tk_cmd_fn(int argc, char **argv);

#define TK_CMD(name, fn, ...) tk_cmd_fn fn;
#include "tools/tracectl/help/commands.def"
#undef TK_CMD

#endif
