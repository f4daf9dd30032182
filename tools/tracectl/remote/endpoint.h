/* SPDX-License-Identifier: Apache-2.0 */
/* A collector's address and the certificates for it: from options, TRACECTL_* in the environment and a file of KEY = VALUE
 * lines, in this order of precedence. The file is TRACECTL_CONFIG, else $XDG_CONFIG_HOME/tracectl.conf, else
 * ~/.config/tracectl.conf; its keys are the options' names.
 *
 * Errors    TB_BROKEN: wrong syntax. TB_IO, TB_NOTFOUND: a file that was named.
 */
#ifndef TK_REMOTE_ENDPOINT_H
#define TK_REMOTE_ENDPOINT_H

#include <limits.h>

#include "base/text/hostport.h"
#include "tools/tracectl/remote/client.h"

enum { TK_URL_BYTES = 320, TK_HTTP_PATH_BYTES = 8192, TK_HTTP_PORT = 7073 };
#define TK_READERS_PORT "7073, or what listen.http says"

struct tk_endpoint {
  char url[TK_URL_BYTES];   /* everything before /api/v1 */
  char shown[TK_URL_BYTES]; /* for people */
  char path[TK_URL_BYTES];  /* of the unix socket; "": none */
  struct tb_hostport at;    /* of the URL, if there is no socket; port 0: the scheme's */
  bool tls;
  char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX], crl[PATH_MAX]; /* "": not given */
};

TB_MUST tb_rc tk_endpoint_find(const struct tk_client_args *args, struct tb_diag *diag,
                               struct tk_endpoint *out);

#endif
