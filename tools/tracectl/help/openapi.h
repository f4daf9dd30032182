/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's HTTP interface as an OpenAPI 3.1 document, made of proto/routes.def, proto/params.def, lib/tls/role.def and
 * the messages. */
#ifndef TK_HELP_OPENAPI_H
#define TK_HELP_OPENAPI_H

#include <stdbool.h>
#include <stdio.h>

/* False: no memory. */
bool tk_openapi_print(FILE *out);

#endif
