/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/net/nng_listener.h"

#include <nng/supplemental/tls/tls.h>
#include <nng/transport/ipc/ipc.h>
#include <stdio.h>

enum { SOCKET_MODE = 0660 }; /* this host's group reads traces, others do not */

static int set_options(nng_listener listener, const char *url, struct tc_nng_tls *tls) {
  if (tc_url_is_ipc(url))
    return nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS, SOCKET_MODE);
  int rv = nng_listener_set_bool(listener, NNG_OPT_TCP_KEEPALIVE, true);
  if (rv == 0 && tls != NULL)
    rv = nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(tls));
  return rv;
}

tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                    struct tb_diag *diag, char out_url[TC_URL_BYTES]) {
  nng_listener listener;
  char *real;

  if (tc_url_is_tls(url) && tls == NULL)
    return tb_fail(diag, TB_IO, "%.120s: no certificates are configured for TLS", url);
  int rv = nng_listener_create(&listener, socket, url);
  if (rv != 0) return tb_fail(diag, TB_IO, "cannot listen on %.120s: %s", url, nng_strerror(rv));
  rv = set_options(listener, url, tls);
  if (rv == 0) rv = nng_listener_start(listener, 0);
  if (rv == 0) rv = nng_listener_get_string(listener, NNG_OPT_URL, &real);
  if (rv != 0) {
    nng_listener_close(listener);
    return tb_fail(diag, TB_IO, "cannot listen on %.120s: %s", url, nng_strerror(rv));
  }
  snprintf(out_url, TC_URL_BYTES, "%s", real);
  nng_strfree(real);
  return TB_OK;
}
