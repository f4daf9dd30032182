/* SPDX-License-Identifier: Apache-2.0 */
/* Opens one nng listener as the configuration says: ipc:// for this host's group, tls+tcp:// for
 * whoever has a reader certificate.
 *
 * Errors    TB_IO with URL and reason in diag.
 */
#ifndef TC_NNG_LISTEN_H
#define TC_NNG_LISTEN_H

#include <nng/nng.h>

#include "base/result.h"
#include "collector/nng_engine.h"

enum { TC_URL_MAX = 320 };

/* tls may be NULL where url needs none. out_url: what a reader dials, port 0 resolved. A socket file
 * that a killed run left is taken over; one that somebody answers on is not. */
TB_MUST tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                            struct tb_diag *diag, char out_url[TC_URL_MAX]);

#endif
