/* SPDX-License-Identifier: Apache-2.0 */
/* A statement's tokens, as far as names, texts and signs must be told apart. Private to this room. */
#ifndef TK_NAMES_READER_H
#define TK_NAMES_READER_H

#include <stdbool.h>
#include <stddef.h>

enum tk_token { TK_TOKEN_END, TK_TOKEN_NAME, TK_TOKEN_TEXT, TK_TOKEN_SIGN };

/* A statement and its current token; a copy looks ahead. */
struct tk_reader {
  const char *at; /* after the token */
  enum tk_token kind;
  const char *token; /* without its quotes */
  size_t len;
};

/* Comments are passed over. A doubled quote ends a text and begins the next. */
void tk_reader_next(struct tk_reader *r);
/* Is the token this name, or sign? Letters' case does not matter. */
bool tk_reader_is(const struct tk_reader *r, const char *word);

#endif
