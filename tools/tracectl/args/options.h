/* SPDX-License-Identifier: Apache-2.0 */
/* A verb's options: one table, from which getopt's tables, `tracectl help VERB`, the manual page and
 * the completion are made.
 *
 *   const struct tk_option tk_cat_options[] = {
 *     TK_OPTION('d', NULL, "parsed|wire", tk_read_word, AT(form), "what is printed"),
 *     TK_OPTION(0, "gen", "A..B", tk_read_generations, AT(which), "these generations alone"),
 *     TK_GROUP(tk_client_options, AT(client)),
 *     { 0 },
 *   };
 *
 * AT(form) is offsetof(struct cat, form). Completion uses arg: words separated by bars are values, FILE and OUT are paths,
 * DIR is a folder. A row without letter and name is for help only: it describes an argument of the verb or, if arg is
 * NULL, is a paragraph.
 *
 * An option has the same name in all verbs: --since and --until are times, -o is a file, --top is a number of rows. Other
 * usual names (--from and --to, -n, --last) are accepted where that option is, and not shown; the error for a name of other
 * programs says ours.
 *
 * Memory    values are lent from argv.
 * Errors    on stderr, with TK_USAGE.
 */
#ifndef TK_ARGS_OPTIONS_H
#define TK_ARGS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"

struct tk_option;

/* Stores an option's value (NULL for a flag) in its field. TB_BROKEN: the value is wrong; diag has
 * the reason. */
typedef tb_rc tk_read_fn(const struct tk_option *option, const char *value, void *field,
                         struct tb_diag *diag);

struct tk_option {
  char letter;                   /* 0: none */
  const char *name;              /* NULL: none */
  const char *arg;               /* NULL: a flag */
  tk_read_fn *read;              /* NULL: for help only */
  size_t field;                  /* its offset in the verb's options */
  const char *about;             /* one sentence or more; help breaks the lines */
  const struct tk_option *group; /* rows inserted here, with `field` added to their offsets */
};

#define TK_OPTION(letter, name, arg, read, field, about)                                           \
  { letter, name, arg, read, field, about, NULL }
#define TK_GROUP(rows, field)                                                                      \
  { 0, NULL, NULL, NULL, field, NULL, rows }
#define TK_HELP(arg, about)                                                                        \
  { 0, NULL, arg, NULL, 0, about, NULL }

/* Returns true for the last row of a table, which is zeroed. */
static inline bool tk_option_is_end(const struct tk_option *row) {
  return row->about == NULL && row->group == NULL;
}

/* Reads all options into target; optind is then the first argument, argv[0] the verb. Returns
 * TK_DONE or TK_USAGE. */
int tk_options_read(int argc, char **argv, const struct tk_option *options, void *target);
/* For a verb without arguments. */
int tk_options_read_all(int argc, char **argv, const struct tk_option *options, void *target);

/* Fills in "--top needs a number, not 'x'". Returns TB_BROKEN. */
TB_MUST tb_rc tk_option_needs(const struct tk_option *option, const char *what, const char *value,
                              struct tb_diag *diag);
/* Puts the option's name in front of diag's text. Returns TB_BROKEN. */
TB_MUST tb_rc tk_option_fails(const struct tk_option *option, struct tb_diag *diag);

enum { TK_TEXTS_MAX = 64 };

/* Values of an option that may be repeated. */
struct tk_texts {
  const char *text[TK_TEXTS_MAX];
  size_t n;
};

/* A time on the wall clock or on the trace's clock. */
struct tk_at {
  bool is_given, is_wall;
  int64_t at;       /* nanoseconds on the trace's clock, if not is_wall */
  uint64_t wall_ns; /* if is_wall */
};

tk_read_fn tk_read_flag, /* bool */
    tk_read_text,        /* const char * */
    tk_read_texts,       /* struct tk_texts */
    tk_read_number,      /* unsigned; 0 is allowed */
    tk_read_count,       /* uint64_t; 1 or more */
    tk_read_word,        /* unsigned: index of the word in arg */
    tk_read_time,        /* uint64_t: nanoseconds on the wall clock */
    tk_read_span,        /* uint64_t: nanoseconds */
    tk_read_at;          /* struct tk_at */

/* Prints the rows. For rows of the group `brief` prints the line `instead`. */
void tk_options_print(const struct tk_option *options, const struct tk_option *brief,
                      const char *instead);
/* Prints text with line breaks, indented by column; the cursor is at column. */
void tk_help_words(const char *text, size_t column);

#endif
