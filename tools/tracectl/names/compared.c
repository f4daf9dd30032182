/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/compared.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/names/words.h"

enum kind { END, NAME, TEXT, SIGN };

/* A statement and its current token; a copy looks ahead. */
struct reader {
  const char *at; /* after the token */
  enum kind kind;
  const char *token; /* a text without its quotes */
  size_t len;
};

static void skip_blank(struct reader *r) {
  for (;;) {
    r->at += strspn(r->at, " \t\r\n");
    if (strncmp(r->at, "--", 2) == 0) {
      r->at += strcspn(r->at, "\n");
    } else if (strncmp(r->at, "/*", 2) == 0) {
      const char *end = strstr(r->at + 2, "*/");
      r->at = end == NULL ? r->at + strlen(r->at) : end + 2;
    } else {
      return;
    }
  }
}

static bool is_of_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* A quote within quotes is doubled; such a text is no word of ours, and its halves do no harm. */
static void read_quoted(struct reader *r, char end) {
  const char *close = strchr(r->at + 1, end);

  r->kind = end == '\'' ? TEXT : NAME;
  r->token = r->at + 1;
  r->len = close == NULL ? strlen(r->token) : (size_t)(close - r->token);
  r->at = r->token + r->len + (close != NULL);
}

static void next(struct reader *r) {
  skip_blank(r);
  r->token = r->at;
  switch (*r->at) {
  case '\0':
    r->kind = END;
    r->len = 0;
    return;
  case '\'':
  case '"':
  case '`': read_quoted(r, *r->at); return;
  case '[': read_quoted(r, ']'); return;
  default: break;
  }
  r->kind = is_of_name(*r->at) ? NAME : SIGN;
  for (r->len = 1; r->kind == NAME && is_of_name(r->at[r->len]);) r->len++;
  if (r->kind == SIGN) r->len = strspn(r->at, "=<>!") > 0 ? strspn(r->at, "=<>!") : 1;
  r->at += r->len;
}

static bool is(const struct reader *r, const char *word) {
  return r->kind != TEXT && strlen(word) == r->len &&
         sqlite3_strnicmp(r->token, word, (int)r->len) == 0;
}

static bool is_equality(const struct reader *r) {
  return is(r, "=") || is(r, "==") || is(r, "<>") || is(r, "!=") || is(r, "is");
}

struct checking {
  const char *sql;
  struct tk_words_said said;
};

static void check(struct checking *c, const char *column, const struct reader *text,
                  enum tk_word_match match) {
  char word[TK_WORDS_TEXT];

  if (text->len >= sizeof word) return;
  memcpy(word, text->token, text->len);
  word[text->len] = 0;
  tk_words_check(&c->said, c->sql, column, word, match);
}

static void check_list(struct checking *c, const char *column, struct reader r) {
  next(&r);
  if (!is(&r, "(")) return;
  do {
    next(&r);
    if (r.kind == TEXT) check(c, column, &r, TK_WORD_EQUAL);
    next(&r);
  } while (is(&r, ","));
}

/* r: at the column's name. */
static void check_after(struct checking *c, const char *column, struct reader r) {
  enum tk_word_match match = TK_WORD_EQUAL;

  next(&r);
  if (is(&r, "not")) next(&r);
  if (is(&r, "in")) {
    check_list(c, column, r);
    return;
  }
  if (is(&r, "like"))
    match = TK_WORD_LIKE;
  else if (is(&r, "glob"))
    match = TK_WORD_GLOB;
  else if (!is_equality(&r))
    return;
  next(&r);
  if (is(&r, "not")) next(&r);
  bool is_text = r.kind == TEXT || (r.kind == NAME && r.token[-1] == '"'); /* as SQLite takes it */
  if (is_text) check(c, column, &r, match);
}

/* text: in 'word' = column, or = table.column. */
static void check_before(struct checking *c, struct reader r) {
  const struct reader text = r;

  next(&r);
  if (!is_equality(&r)) return;
  next(&r);
  struct reader after = r;
  next(&after);
  if (is(&after, ".")) {
    next(&after);
    r = after;
  }
  const char *column = r.kind == NAME ? tk_words_column(r.token, r.len) : NULL;
  if (column != NULL) check(c, column, &text, TK_WORD_EQUAL);
}

void tk_compared_check(const char *sql) {
  struct checking c = { .sql = sql };
  struct reader r = { .at = sql };

  for (next(&r); r.kind != END; next(&r)) {
    const char *column = r.kind == NAME ? tk_words_column(r.token, r.len) : NULL;
    if (column != NULL) check_after(&c, column, r);
    if (r.kind == TEXT) check_before(&c, r);
  }
}
