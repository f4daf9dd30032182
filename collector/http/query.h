/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters behind a URL's '?'.
 *
 * A route names the ones it takes; any other, one given twice or one badly encoded is an error, since a
 * misspelt filter that is passed over answers another question than was asked.
 *
 * Errors    TB_PROTOCOL with the parameter's name in diag.
 */
#ifndef TC_HTTP_QUERY_H
#define TC_HTTP_QUERY_H

#include "base/result.h"

/* Undoes %XX in place; plus: '+' is a space. False: a broken or NUL escape. */
bool tc_http_percent_undo(char *text, bool plus);

struct tc_http_param {
  const char *name;
  const char **value; /* stays as it was where the parameter is not given */
};

/* Takes query apart in place. */
TB_MUST tb_rc tc_http_query(char *query, const struct tc_http_param *params, size_t n,
                            struct tb_diag *diag);

/* A plain decimal number from min to max. */
TB_MUST tb_rc tc_http_number(const char *name, const char *text, uint64_t min, uint64_t max,
                             struct tb_diag *diag, uint64_t *out);

#endif
