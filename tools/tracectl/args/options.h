/* SPDX-License-Identifier: Apache-2.0 */
/* A verb's options: one table, of which getopt's tables, `tracectl help VERB`, the manual page and
 * the completion are made.
 *
 *   const struct tk_option tk_cat_options[] = {
 *     TK_OPTION('d', NULL, "parsed|wire", tk_read_word, AT(form), "what is printed"),
 *     TK_OPTION(0, "gen", "A..B", tk_read_generations, AT(which), "these generations alone"),
 *     TK_GROUP(tk_client_options, AT(client)),
 *     { 0 },
 *   };
 *
 * AT(form) is offsetof(struct cat, form). The argument says what completion offers: words with bars
 * are its values, FILE and OUT are paths, DIR is a folder. A row without letter and name is for
 * help alone: an argument of the verb, or, without an argument, a paragraph.
 *
 * The same thing has the same name in all verbs: --since and --until are times, -o is a file, --top
 * a number of rows. Other names for these are errors that tell the right one.
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

/* Stores an option's value (NULL for a flag) in its field. TB_BROKEN: the value is wrong; diag says
 * why. */
typedef tb_rc tk_read_fn(const struct tk_option *option, const char *value, void *field,
                         struct tb_diag *diag);

struct tk_option {
  char letter;             /* 0: none */
  const char *name;        /* NULL: none */
  const char *arg;         /* NULL: a flag */
  tk_read_fn *read;        /* NULL: for help alone */
  size_t field;            /* its offset in the verb's options */
  const char *about;       /* one sentence or more; help breaks the lines */
  const struct tk_option *group; /* these rows instead, their fields from `field` on */
};

#define TK_OPTION(letter, name, arg, read, field, about)                                           \
  { letter, name, arg, read, field, about, NULL }
#define TK_GROUP(rows, field) { 0, NULL, NULL, NULL, field, NULL, rows }
#define TK_HELP(arg, about)   { 0, NULL, arg, NULL, 0, about, NULL }

/* A table's last row is zeroed. */
static inline bool tk_option_is_end(const struct tk_option *row) {
  return row->about == NULL && row->group == NULL;
}

/* Reads all options into target; optind is then the first argument. argv[0] is the verb. Answers
 * TK_DONE or TK_USAGE. */
int tk_options_read(int argc, char **argv, const struct tk_option *options, void *target);
/* The same for a verb that has no arguments. */
int tk_options_read_all(int argc, char **argv, const struct tk_option *options, void *target);

/* "--top needs a number, not 'x'". Answers TB_BROKEN. */
TB_MUST tb_rc tk_option_needs(const struct tk_option *option, const char *what, const char *value,
                              struct tb_diag *diag);
/* Puts the option's name in front of what diag says. Answers TB_BROKEN. */
TB_MUST tb_rc tk_option_fails(const struct tk_option *option, struct tb_diag *diag);

enum { TK_TEXTS_MAX = 64 };

/* The values of an option that may be given several times. */
struct tk_texts {
  const char *text[TK_TEXTS_MAX];
  size_t n;
};

/* A moment, on the wall clock or on the trace's own. */
struct tk_at {
  bool is_given, is_wall;
  int64_t at;       /* nanoseconds on the trace's clock, or, with is_wall, */
  uint64_t wall_ns; /* on the wall clock */
};

tk_read_fn tk_read_flag, /* bool */
    tk_read_text,        /* const char * */
    tk_read_texts,       /* struct tk_texts */
    tk_read_number,      /* unsigned; may be 0 */
    tk_read_count,       /* uint64_t; 1 or more */
    tk_read_word,        /* unsigned: which of the words in arg */
    tk_read_time,        /* uint64_t: nanoseconds on the wall clock */
    tk_read_span,        /* uint64_t: nanoseconds */
    tk_read_at;          /* struct tk_at */

/* The rows as text for people: terms, and what they mean. For the rows of the group `brief`, the
 * line `instead` is printed. */
void tk_options_print(const struct tk_option *options, const struct tk_option *brief,
                      const char *instead);
/* Text, its lines broken and indented by column; the first one begins at column. */
void tk_help_words(const char *text, size_t column);

#endif
