/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/nng_listen.h"

#include <nng/supplemental/tls/tls.h>
#include <nng/transport/ipc/ipc.h>
#include <stdio.h>
#include <string.h>

enum { SOCKET_MODE = 0660 }; /* this host's group reads traces, others do not */

static int start(nng_listener listener, const char *url, struct tc_nng_tls *tls) {
  int rv = 0;

  if (strncmp(url, "ipc://", 6) == 0)
    rv = nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS, SOCKET_MODE);
  else if (strncmp(url, "tls+", 4) == 0)
    rv = nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(tls));
  return rv != 0 ? rv : nng_listener_start(listener, 0);
}

tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                    struct tb_diag *diag, char out_url[TC_URL_MAX]) {
  nng_listener listener;
  char *real = NULL;

  if (strncmp(url, "tls+", 4) == 0 && tls == NULL)
    return tb_fail(diag, TB_IO, "%.120s: no certificates for it", url);
  int rv = nng_listener_create(&listener, socket, url);
  if (rv == 0) rv = start(listener, url, tls);
  if (rv == 0) rv = nng_listener_get_string(listener, NNG_OPT_URL, &real); /* port 0 resolved */
  if (rv != 0) return tb_fail(diag, TB_IO, "cannot listen on %.120s: %s", url, nng_strerror(rv));
  snprintf(out_url, TC_URL_MAX, "%s", real);
  nng_strfree(real);
  return TB_OK;
}
