/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/dialect.h"

#include <stdbool.h>
#include <string.h>

#include "tools/tracectl/names/reader.h"

/* Do these words follow, the reader's token first? */
static bool follow(struct tk_reader r, const char *const *word) {
  for (; *word != NULL; word++, tk_reader_next(&r))
    if (!tk_reader_is(&r, *word)) return false;
  return true;
}

static bool is_cast(const struct tk_reader *r) {
  return tk_reader_is(r, ":") && r->token[1] == ':';
}

const char *tk_dialect_syntax(const char *sql) {
  static const char *const within[] = { "within", "group", NULL }, *const all[] = { "group", "by",
                                                                                    "all", NULL };
  struct tk_reader r = { .at = sql };

  for (tk_reader_next(&r); r.kind != TK_TOKEN_END; tk_reader_next(&r)) {
    if (is_cast(&r)) return "x::int is CAST(x AS INTEGER)";
    if (tk_reader_is(&r, "ilike")) return "ilike is LIKE, which ignores case";
    if (follow(r, within)) return "percentile_cont(0.99) WITHIN GROUP (ORDER BY x) is p(x, 99)";
    if (follow(r, all)) return "GROUP BY needs the names of the columns, or their numbers: 1, 2";
  }
  return NULL;
}

const char *tk_dialect_function(const char *name) {
  static const struct {
    const char *part, *ours;
  } guesses[] = { { "percentile", "p(x, 99)" },
                  { "quantile", "p(x, 99)" },
                  { "greatest", "max(a, b)" },
                  { "least", "min(a, b)" },
                  { "array_agg", "json_group_array(x)" } };

  for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
    if (strcasestr(name, guesses[i].part) != NULL) return guesses[i].ours;
  return NULL;
}
