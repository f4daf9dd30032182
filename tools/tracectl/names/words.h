/* SPDX-License-Identifier: Apache-2.0 */
/* The words that a column of names can have: kinds, states, reasons.
 *
 * Reasons are open: a Go that is newer, or a C program, has some that are not listed.
 */
#ifndef TK_NAMES_WORDS_H
#define TK_NAMES_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { TK_WORDS_SAID = 8, TK_WORDS_TEXT = 64 };

/* Words that a query has been told about; initially zero. */
struct tk_words_said {
  char word[TK_WORDS_SAID][TK_WORDS_TEXT];
  unsigned n;
};

enum tk_word_match { TK_WORD_EQUAL, TK_WORD_LIKE, TK_WORD_GLOB };

/* Returns the i-th word of a column, or NULL: there are no more, or the column is not one of names. */
const char *tk_words_at(const char *table, const char *column, unsigned i);
/* Returns one sentence on a wait's reason, or NULL. */
const char *tk_words_about(const char *reason);
/* Returns the name of a column of names, or NULL. */
const char *tk_words_column(const char *name, size_t len);
/* Does the statement have the name as a word? */
bool tk_words_in(const char *sql, const char *name);
/* Prints a line on stderr, once for each word, if no table of the statement has a word in that column that matches. */
void tk_words_check(struct tk_words_said *said, const char *sql, const char *column,
                    const char *word, enum tk_word_match match);

#endif
