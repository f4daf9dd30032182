/* SPDX-License-Identifier: Apache-2.0 */
/* Lets nng listen as the configuration says: ipc:// for this host's group, tls+tcp:// for holders of a reader
 * certificate.
 *
 * Nothing of ours watches it: what once stopped nng's listeners is mended below them (nng/stream.h, nng/clock.h). How many
 * peers are accepted is nng/accept.h's.
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

/* Until socket is closed. tls may be NULL where url needs none. out_url has port 0 resolved. A socket file that a killed
 * run left is taken over; one on which there is an answer is not. */
TB_MUST tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                            struct tb_diag *diag, char out_url[TC_URL_BYTES]);

#endif
