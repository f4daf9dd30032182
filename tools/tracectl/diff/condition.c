/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/diff/condition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"

static const char *skip_blanks(const char *at) {
  return at + strspn(at, " \t");
}

static tb_rc no_metric(const char *at, size_t len, struct tb_diag *diag) {
  char word[40];
  struct tb_nearest nearest = { .word = word };

  snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word), at);
  for (unsigned m = 0; m < TK_DIFF_METRIC_COUNT; m++)
    tb_nearest_try(&nearest, tk_diff_metric_name((enum tk_diff_metric)m));
  if (nearest.best != NULL)
    return tb_fail(diag, TB_BROKEN, "no metric \"%s\"; did you mean \"%s\"?", word, nearest.best);
  return tb_fail(
      diag, TB_BROKEN,
      "no metric \"%s\"; there are sched, running, block, syscall, stw, gc, tasks, regions", word);
}

static tb_rc parse_metric(const char **at, struct tb_diag *diag, struct tk_diff_condition *out) {
  size_t len = strcspn(*at, ".[ ");

  if (!tk_diff_metric_find(*at, len, &out->metric)) return no_metric(*at, len, diag);
  *at += len;
  if (**at != '[') return TB_OK;
  const char *end = strrchr(*at, ']');
  if (end == NULL || (size_t)(end - *at) > sizeof out->key)
    return tb_fail(diag, TB_BROKEN, "\"%.60s\" has no end: [KEY]", *at);
  memcpy(out->key, *at + 1, (size_t)(end - *at - 1));
  *at = end + 1;
  return TB_OK;
}

static tb_rc parse_field(const char **at, struct tb_diag *diag, struct tk_diff_condition *out) {
  if (**at == '.') {
    size_t len = strcspn(++*at, " <>");
    for (unsigned f = 0; f < TK_DIFF_FIELDS; f++) {
      const char *name = tk_diff_field_name((enum tk_diff_field)f);
      if (strlen(name) != len || memcmp(name, *at, len) != 0) continue;
      out->field = (enum tk_diff_field)f;
      *at += len;
      return TB_OK;
    }
  }
  return tb_fail(diag, TB_BROKEN,
                 "a field is required at '%.40s': .per_second .time .mean .p50 .p99", *at);
}

tb_rc tk_diff_condition_parse(const char *text, struct tb_diag *diag,
                              struct tk_diff_condition *out) {
  const char *at = skip_blanks(text);
  char *end;

  *out = (struct tk_diff_condition){ .text = text };
  TB_TRY(parse_metric(&at, diag, out));
  TB_TRY(parse_field(&at, diag, out));
  at = skip_blanks(at);
  if (*at != '<' && *at != '>')
    return tb_fail(diag, TB_BROKEN, "> or < is required at '%.40s'", at);
  out->is_less = *at == '<';
  at = skip_blanks(at + 1);
  errno = 0;
  out->share = strtod(at, &end) / 100;
  const char *rest = skip_blanks(end);
  if (end == at || errno != 0 || *rest != '%' || *skip_blanks(rest + 1) != 0)
    return tb_fail(diag, TB_BROKEN, "a change is required at '%.40s': +20%%, -10%%", at);
  return TB_OK;
}

bool tk_diff_condition_is_exceeded(const struct tk_diff_condition *condition,
                                   const struct tk_change *change) {
  double share = change->share; /* 0 if it has none */

  return condition->is_less ? share < 0 && share < condition->share
                            : share > 0 && share > condition->share;
}

bool tk_diff_condition_is_met(const struct tk_diff_condition *condition,
                              const struct tk_change *change) {
  return tk_diff_condition_is_exceeded(condition, change) && tk_change_is_significant(change);
}
