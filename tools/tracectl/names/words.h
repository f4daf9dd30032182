/* SPDX-License-Identifier: Apache-2.0 */
/* The words that a column of names can have: kinds, states, reasons.
 *
 * Reasons are open: a Go that is newer, or a C program, has some that are not listed.
 */
#ifndef TK_NAMES_WORDS_H
#define TK_NAMES_WORDS_H

#include <stdbool.h>

enum { TK_WORDS_SAID = 8, TK_WORDS_TEXT = 64 };

/* Words that a query has been told about; initially zero. */
struct tk_words_said {
  char word[TK_WORDS_SAID][TK_WORDS_TEXT];
  unsigned n;
};

/* Returns the i-th word of a column, or NULL: there are no more, or the column is not one of names. */
const char *tk_words_at(const char *table, const char *column, unsigned i);
/* Prints a line on stderr, once for each word, if the column never has the word. */
void tk_words_check(struct tk_words_said *said, const char *table, const char *column,
                    const char *word);

#endif
