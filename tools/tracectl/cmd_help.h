/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `tracectl help`, shared with main(). */
#ifndef TK_CMD_HELP_H
#define TK_CMD_HELP_H

#include <stdio.h>

#include "tools/tracectl/help/verbs.h"

void tk_help_overview(FILE *out);
void tk_help_verb(const struct tk_verb *verb);
int tk_help_unknown(const char *name); /* prints an error; returns TK_USAGE */

#endif
