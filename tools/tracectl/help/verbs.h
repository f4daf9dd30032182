/* SPDX-License-Identifier: Apache-2.0 */
/* commands.def as data, for `tracectl help`. Manual pages and completion are made from help --json
 * (tools/tracectl/help/manual.py). */
#ifndef TK_HELP_VERBS_H
#define TK_HELP_VERBS_H

#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/tracectl.h"

/* Purpose of a verb, in the order of `tracectl help`. */
enum tk_purpose { TK_FIRST_DAY, TK_READ_FILE, TK_ASK, TK_RUN, TK_WRITE, TK_ITSELF };

struct tk_verb {
  const char *name;
  tk_cmd_fn *run;
  enum tk_purpose purpose;
  const char *args, *about, *notes; /* notes: paragraphs, a line each */
  const struct tk_option *options;
};
extern const struct tk_verb tk_verbs[];               /* ends with a row without name */
extern const struct tk_verb tk_help_connect;          /* not a verb: `tracectl help connect` */
const struct tk_verb *tk_verb_find(const char *name); /* NULL: none */
const char *tk_purpose_text(enum tk_purpose purpose);

struct tk_example {
  const char *verb, *command, *about;
};
extern const struct tk_example tk_examples[]; /* ends with a row without verb */

#endif
