/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/query.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"

bool tc_http_percent_undo(char *text, bool plus) {
  char *to = text;

  for (const char *from = text; *from != '\0'; from++) {
    char c = *from;

    if (c == '+' && plus) c = ' ';
    if (c == '%') {
      if (!tb_unhex(from + 1, (unsigned char *)&c, 1) || c == '\0') return false;
      from += 2;
    }
    *to++ = c;
  }
  *to = '\0';
  return true;
}

static tb_rc take(char *name, char *value, const struct tc_http_param *params, size_t n,
                  uint64_t *given, struct tb_diag *diag) {
  if (!tc_http_percent_undo(name, true))
    return tb_fail(diag, TB_PROTOCOL, "the query is not well encoded");
  if (!tc_http_percent_undo(value, true))
    return tb_fail(diag, TB_PROTOCOL, "parameter \"%.60s\" is not well encoded", name);
  for (size_t i = 0; i < n; i++) {
    if (strcmp(params[i].name, name) != 0) continue;
    if (*given & UINT64_C(1) << i)
      return tb_fail(diag, TB_PROTOCOL, "parameter \"%s\" is given twice", name);
    *given |= UINT64_C(1) << i;
    if (*value != '\0') *params[i].value = value;
    return TB_OK;
  }
  return tb_fail(diag, TB_PROTOCOL, "no parameter \"%.60s\" here", name);
}

tb_rc tc_http_query(char *query, const struct tc_http_param *params, size_t n,
                    struct tb_diag *diag) {
  uint64_t given = 0;

  for (char *next, *at = query; at != NULL && *at != '\0'; at = next) {
    next = strchr(at, '&');
    if (next != NULL) *next++ = '\0';
    if (*at == '\0') continue;
    char *value = strchr(at, '=');
    if (value != NULL)
      *value++ = '\0';
    else
      value = at + strlen(at);
    TB_TRY(take(at, value, params, n, &given, diag));
  }
  return TB_OK;
}

tb_rc tc_http_number(const char *name, const char *text, uint64_t min, uint64_t max,
                     struct tb_diag *diag, uint64_t *out) {
  uint64_t value = 0;
  bool fits = *text != '\0';

  for (const char *c = text; fits && *c != '\0'; c++) {
    fits = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
           !__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
  }
  if (!fits || value < min || value > max)
    return tb_fail(diag, TB_PROTOCOL, "%s=%.40s is not a whole number from %" PRIu64 " to %" PRIu64,
                   name, text, min, max);
  *out = value;
  return TB_OK;
}
