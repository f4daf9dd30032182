/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as the user typed it, to print it again with another option: a line to paste into a shell.
 *
 * Memory    argv is lent for the process' life.
 * Threads   one.
 */
#ifndef TK_ARGS_COMMAND_H
#define TK_ARGS_COMMAND_H

#include <stdio.h>

/* argv[0] is the verb. */
void tk_command_init(int argc, char **argv);
/* Prints "tracectl VERB ... --NAME VALUE" without a line's end; an earlier --NAME is left out. */
void tk_command_print(FILE *out, const char *name, const char *value);

#endif
