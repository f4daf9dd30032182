/* SPDX-License-Identifier: Apache-2.0 */
/* commands.def as data: what `tracectl help`, the manual pages and the shells' completions are made of.
 *
 * The options' text is read as it stands, by rules that commands.def states: a line that begins with
 * two spaces opens an entry, its term ends at two spaces (or the line's end), what follows explains
 * it, deeper indented lines go on with that; a line without indent is a paragraph of its own.
 *
 * Memory    spans point into the table's text.
 */
#ifndef TK_HELP_VERBS_H
#define TK_HELP_VERBS_H

#include <stddef.h>

#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/tracectl.h"

struct tk_verb {
  const char *name;
  tk_cmd_fn *run;
  const char *args, *about, *options;
};
extern const struct tk_verb tk_verbs[];               /* ends with a row without name */
const struct tk_verb *tk_verb_find(const char *name); /* NULL: none */

enum { TK_ABOUT_BYTES = 1024, TK_OPTIONS_MAX = 4 };

struct tk_example {
  const char *verb, *command, *about;
};
extern const struct tk_example tk_examples[]; /* ends with a row without verb */

struct tk_span {
  const char *at;
  size_t len;
};

struct tk_entry {
  struct tk_span term;        /* empty: a paragraph */
  char about[TK_ABOUT_BYTES]; /* lines joined by single spaces */
};
/* The entry that begins at *text, which moves past it. False: none is left. */
bool tk_entry_next(const char **text, struct tk_entry *out);

/* A term that begins with '-' names options: "-o, --output FILE", "--since T, --until T". */
struct tk_option {
  char letter;         /* 0: has none */
  struct tk_span name; /* without the dashes; empty: only a letter */
  struct tk_span arg;  /* empty: a switch */
};
/* Answers how many the term names: 0 where it is no option. */
size_t tk_term_options(struct tk_span term, struct tk_option out[TK_OPTIONS_MAX]);

/* The meaning of an argument's name: "10s|1m|all" lists words that may stand there, FILE, DIR and their
 * like are paths, anything else is the user's own. */
enum tk_arg_kind { TK_ARG_OTHER, TK_ARG_WORDS, TK_ARG_FILE, TK_ARG_DIR };
enum tk_arg_kind tk_arg_kind(struct tk_span arg);

#endif
