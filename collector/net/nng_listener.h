/* SPDX-License-Identifier: Apache-2.0 */
/* Makes nng listen as configured: ipc:// for this host's group, tls+tcp:// for clients with a reader certificate.
 *
 * No code watches the listeners: errors that used to stop them are fixed below nng (nng/stream.h, nng/clock.h). nng/accept.h
 * limits the number of peers.
 *
 * Threads   any.
 * Errors    TB_IO with URL and reason in diag.
 */
#ifndef TC_NET_NNG_LISTENER_H
#define TC_NET_NNG_LISTENER_H

#include <nng/nng.h>

#include "base/result.h"
#include "config/url_list.h"
#include "nng/tls_engine.h"

/* Listens until socket is closed. tls may be NULL if url needs none. out_url: the url, with the actual port instead of 0.
 * Replaces a socket file that nobody listens on (left by a killed collector). */
TB_MUST tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                            struct tb_diag *diag, char out_url[TC_URL_BYTES]);

#endif
