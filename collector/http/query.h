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

#include "proto/query.h"

struct tc_http_param {
  const char *name;
  const char **value; /* stays as it was where the parameter is not given */
};

/* Takes query apart in place. */
TB_MUST tb_rc tc_http_query(char *query, const struct tc_http_param *params, size_t n,
                            struct tb_diag *diag);

#endif
