/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/compared.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/names/reader.h"
#include "tools/tracectl/names/words.h"

static bool is_equality(const struct tk_reader *r) {
  return tk_reader_is(r, "=") || tk_reader_is(r, "==") || tk_reader_is(r, "<>") ||
         tk_reader_is(r, "!=") || tk_reader_is(r, "is");
}

struct checking {
  const char *sql;
  struct tk_words_said said;
};

static void check(struct checking *c, const char *column, const struct tk_reader *text,
                  enum tk_word_match match) {
  char word[TK_WORDS_TEXT];

  if (text->len >= sizeof word) return;
  memcpy(word, text->token, text->len);
  word[text->len] = 0;
  tk_words_check(&c->said, c->sql, column, word, match);
}

static void check_list(struct checking *c, const char *column, struct tk_reader r) {
  tk_reader_next(&r);
  if (!tk_reader_is(&r, "(")) return;
  do {
    tk_reader_next(&r);
    if (r.kind == TK_TOKEN_TEXT) check(c, column, &r, TK_WORD_EQUAL);
    tk_reader_next(&r);
  } while (tk_reader_is(&r, ","));
}

/* r: at the column's name. */
static void check_after(struct checking *c, const char *column, struct tk_reader r) {
  enum tk_word_match match = TK_WORD_EQUAL;

  tk_reader_next(&r);
  if (tk_reader_is(&r, "not")) tk_reader_next(&r);
  if (tk_reader_is(&r, "in")) {
    check_list(c, column, r);
    return;
  }
  if (tk_reader_is(&r, "like"))
    match = TK_WORD_LIKE;
  else if (tk_reader_is(&r, "glob"))
    match = TK_WORD_GLOB;
  else if (!is_equality(&r))
    return;
  tk_reader_next(&r);
  if (tk_reader_is(&r, "not")) tk_reader_next(&r);
  bool is_text = r.kind == TK_TOKEN_TEXT ||
                 (r.kind == TK_TOKEN_NAME && r.token[-1] == '"'); /* as SQLite takes it */
  if (is_text) check(c, column, &r, match);
}

/* text: in 'word' = column, or = table.column. */
static void check_before(struct checking *c, struct tk_reader r) {
  const struct tk_reader text = r;

  tk_reader_next(&r);
  if (!is_equality(&r)) return;
  tk_reader_next(&r);
  struct tk_reader after = r;
  tk_reader_next(&after);
  if (tk_reader_is(&after, ".")) {
    tk_reader_next(&after);
    r = after;
  }
  const char *column = r.kind == TK_TOKEN_NAME ? tk_words_column(r.token, r.len) : NULL;
  if (column != NULL) check(c, column, &text, TK_WORD_EQUAL);
}

void tk_compared_check(const char *sql) {
  struct checking c = { .sql = sql };
  struct tk_reader r = { .at = sql };

  for (tk_reader_next(&r); r.kind != TK_TOKEN_END; tk_reader_next(&r)) {
    const char *column = r.kind == TK_TOKEN_NAME ? tk_words_column(r.token, r.len) : NULL;
    if (column != NULL) check_after(&c, column, r);
    if (r.kind == TK_TOKEN_TEXT) check_before(&c, r);
  }
}
