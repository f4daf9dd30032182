/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/plain.h"

#include <stdio.h>
#include <string.h>

#include "tools/tracectl/names/reader.h"

static bool is_name(const struct tk_reader *r) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

  return r->kind == TK_TOKEN_NAME && strspn(r->token, letters) >= r->len;
}

static bool read_columns(struct tk_reader *r, struct tk_plain *out) {
  size_t len = 0;

  tk_reader_next(r);
  out->columns[0] = '\0';
  if (tk_reader_is(r, "*")) {
    tk_reader_next(r);
    return true;
  }
  for (;;) {
    if (!is_name(r) || len + r->len + 2 > sizeof out->columns) return false;
    len += (size_t)snprintf(out->columns + len, sizeof out->columns - len, "%s%.*s",
                            len > 0 ? "," : "", (int)r->len, r->token);
    tk_reader_next(r);
    if (!tk_reader_is(r, ",")) return true;
    tk_reader_next(r);
  }
}

bool tk_plain_select(const char *sql, struct tk_plain *out) {
  struct tk_reader r = { .at = sql };

  tk_reader_next(&r);
  if (!tk_reader_is(&r, "select") || !read_columns(&r, out)) return false;
  if (!tk_reader_is(&r, "from")) return false;
  tk_reader_next(&r);
  if (r.kind != TK_TOKEN_NAME || r.len >= sizeof out->table) return false;
  memcpy(out->table, r.token, r.len);
  out->table[r.len] = '\0';
  do tk_reader_next(&r);
  while (tk_reader_is(&r, ";"));
  return r.kind == TK_TOKEN_END;
}
