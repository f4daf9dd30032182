/* SPDX-License-Identifier: Apache-2.0 */
/* How libcurl connects to a collector, for those that use it directly.
 *
 * Threads   as the handle's.
 */
#ifndef TK_REMOTE_CURL_H
#define TK_REMOTE_CURL_H

#include <curl/curl.h>

#include "tools/tracectl/remote/endpoint.h"

enum { TK_CURL_CONNECT_MS = 5000 };

struct tk_curl_to {
  const struct tk_endpoint *where;
  const char *agent;    /* User-Agent */
  long quiet_s;         /* so long without a byte is an error */
  long buffer_bytes;    /* of one call of the writer */
  struct tb_diag *diag; /* why our own certificates cannot be read */
  tb_rc rc;             /* its code; initially TB_OK */
};

/* Reports a certificate that cannot be read before connecting. */
TB_MUST tb_rc tk_curl_check(const struct tk_endpoint *where, struct tb_diag *diag);
/* Sets everything but the path, the fields and the functions that take the answer. `to` must outlive the transfer. */
void tk_curl_set(CURL *curl, struct tk_curl_to *to);

#endif
