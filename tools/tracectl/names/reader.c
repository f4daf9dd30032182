/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/reader.h"

#include <ctype.h>
#include <sqlite3.h>
#include <string.h>

static void skip_blank(struct tk_reader *r) {
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
static void read_quoted(struct tk_reader *r, char end) {
  const char *close = strchr(r->at + 1, end);

  r->kind = end == '\'' ? TK_TOKEN_TEXT : TK_TOKEN_NAME;
  r->token = r->at + 1;
  r->len = close == NULL ? strlen(r->token) : (size_t)(close - r->token);
  r->at = r->token + r->len + (close != NULL);
}

void tk_reader_next(struct tk_reader *r) {
  skip_blank(r);
  r->token = r->at;
  switch (*r->at) {
  case '\0':
    r->kind = TK_TOKEN_END;
    r->len = 0;
    return;
  case '\'':
  case '"':
  case '`': read_quoted(r, *r->at); return;
  case '[': read_quoted(r, ']'); return;
  default: break;
  }
  r->kind = is_of_name(*r->at) ? TK_TOKEN_NAME : TK_TOKEN_SIGN;
  for (r->len = 1; r->kind == TK_TOKEN_NAME && is_of_name(r->at[r->len]);) r->len++;
  if (r->kind == TK_TOKEN_SIGN) r->len = strspn(r->at, "=<>!") > 0 ? strspn(r->at, "=<>!") : 1;
  r->at += r->len;
}

bool tk_reader_is(const struct tk_reader *r, const char *word) {
  return r->kind != TK_TOKEN_TEXT && strlen(word) == r->len &&
         sqlite3_strnicmp(r->token, word, (int)r->len) == 0;
}
