/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/query.h"

#include <inttypes.h>
#include <string.h>

#include "proto/query.h"

static tb_rc take(char *name, char *value, const struct tc_http_param *params, size_t n,
                  uint64_t *given, struct tb_diag *diag) {
  if (!tp_percent_undo(name, true))
    return tb_fail(diag, TB_PROTOCOL, "the query is not well encoded");
  if (!tp_percent_undo(value, true))
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
