/* SPDX-License-Identifier: Apache-2.0 */
/* commands.def as data: what `tracectl help` prints. Manual pages and completion are made of that (tools/tracectl/manual.py). */
#ifndef TK_HELP_VERBS_H
#define TK_HELP_VERBS_H


#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/tracectl.h"

struct tk_verb {
  const char *name;
  tk_cmd_fn *run;
  const char *args, *about, *options;
};
extern const struct tk_verb tk_verbs[];               /* ends with a row without name */
const struct tk_verb *tk_verb_find(const char *name); /* NULL: none */

struct tk_example {
  const char *verb, *command, *about;
};
extern const struct tk_example tk_examples[]; /* ends with a row without verb */

#endif
