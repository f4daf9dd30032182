/* SPDX-License-Identifier: Apache-2.0 */
/* Every way tracectl explains itself: on the terminal, as manual pages, to the shells. */
#ifndef TK_HELP_HELP_H
#define TK_HELP_HELP_H

#include <stdio.h>

#include "base/result.h"
#include "tools/tracectl/help/verbs.h"

void tk_help_overview(FILE *out);
void tk_help_verb(const struct tk_verb *verb);
int tk_help_unknown(const char *name); /* says that there is no such verb; TK_USAGE */

/* Writes tracectl.1, tracectl-VERB.1 and tracecollectd.yaml.5 into the folder, made if missing. */
TB_MUST tb_rc tk_man_write(const char *dir, struct tb_diag *diag);

/* A completion script on stdout. False: no such shell is known. */
#define TK_SHELLS "bash|zsh|fish"
bool tk_complete_print(const char *shell);

#endif
