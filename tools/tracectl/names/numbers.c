/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/numbers.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/names/reader.h"
#include "tools/tracectl/term/tracectl.h"

enum { SAID_MAX = 3, TEXT_BYTES = 64 };

static bool is_one_of(const struct tk_reader *r, const char *const *words) {
  for (; *words != NULL; words++)
    if (tk_reader_is(r, *words)) return true;
  return false;
}

static bool is_time(const struct tk_reader *r) {
  return r->len > 3 && strncmp(r->token + r->len - 3, "_ns", 3) == 0;
}

static bool is_number(const struct tk_reader *r) {
  static const char *const columns[] = { "goroutine", "life",  "subject",  "thread",    "gen",
                                         "by_life",   "stack", "by_stack", "by_thread", NULL };

  return r->kind == TK_TOKEN_NAME && (is_time(r) || is_one_of(r, columns));
}

/* Does the statement give the name to something of its own? */
static bool is_alias(const char *sql, const struct tk_reader *name) {
  struct tk_reader r = { .at = sql };
  bool was_as = false;

  for (tk_reader_next(&r); r.kind != TK_TOKEN_END; tk_reader_next(&r)) {
    if (was_as && r.len == name->len && strncasecmp(r.token, name->token, r.len) == 0) return true;
    was_as = tk_reader_is(&r, "as");
  }
  return false;
}

static void copy(const struct tk_reader *r, char out[TEXT_BYTES]) {
  snprintf(out, TEXT_BYTES, "%.*s", (int)(r->len < TEXT_BYTES ? r->len : TEXT_BYTES - 1), r->token);
}

static void say(const struct tk_reader *column, const struct tk_reader *text) {
  char name[TEXT_BYTES], value[TEXT_BYTES];
  uint64_t ns;

  copy(column, name);
  copy(text, value);
  if (value[0] != 0 && strspn(value, "0123456789") == strlen(value))
    tk_note("query", "%s is a number: write %s without quotes", name, value);
  else if (tk_reader_is(column, "wall_ns") && tc_time_parse(value, 0, NULL, &ns) == TB_OK)
    tk_note("query", "wall_ns is a number of nanoseconds since 1970: %" PRIu64 ", not '%s'", ns,
            value);
  else if (is_time(column) && tc_span_parse(value, NULL, &ns) == TB_OK)
    tk_note("query", "%s is a number of nanoseconds: %" PRIu64 ", not '%s'", name, ns, value);
  else if (is_time(column))
    tk_note("query", "%s is a number of nanoseconds, which '%s' is not", name, value);
  else if (tk_reader_is(column, "goroutine"))
    tk_note("query", "goroutine is a number, which '%s' is not; goroutines.entry has the function",
            value);
  else
    tk_note("query", "%s is a number, which '%s' is not", name, value);
}

void tk_numbers_check(const char *sql) {
  static const char *const comparisons[] = { "=", "==", "<>", "!=",      "<",
                                             ">", "<=", ">=", "between", NULL };
  struct tk_reader r = { .at = sql };
  unsigned said = 0;

  for (tk_reader_next(&r); r.kind != TK_TOKEN_END && said < SAID_MAX; tk_reader_next(&r)) {
    struct tk_reader after = r;
    if (!is_number(&r)) continue;
    tk_reader_next(&after);
    if (!is_one_of(&after, comparisons)) continue;
    tk_reader_next(&after);
    if (after.kind != TK_TOKEN_TEXT || is_alias(sql, &r)) continue;
    say(&r, &after);
    said++;
  }
}
