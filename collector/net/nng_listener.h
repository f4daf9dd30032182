/* SPDX-License-Identifier: Apache-2.0 */
/* Opens nng listeners as the configuration says (ipc:// for this host's group, tls+tcp:// for holders of a
 * reader certificate) and keeps them alive.
 *
 * nng 1.5.2 stops accepting for ever when a peer closes at a certain moment of the greeting: its
 * listener takes the peer's NNG_ECLOSED for its own. So a tick looks at the listener's error count;
 * when that has moved, it knocks on its own acceptor, and where the acceptor no longer answers, a new
 * listener takes the old one's place. Readers reconnect and ask again by themselves.
 *
 * It also ends TLS peers that have not greeted in time. How many are accepted is nng/accept.h's.
 *
 * Threads   open and close on one thread; the tick has one of its own.
 * Errors    TB_IO with URL and reason in diag.
 */
#ifndef TC_NET_NNG_LISTENER_H
#define TC_NET_NNG_LISTENER_H

#include <nng/nng.h>

#include "base/result.h"
#include "config/url_list.h"
#include "nng/tls_engine.h"

struct tc_nng_listener;

/* tls may be NULL where url needs none. A socket file that a killed run left is taken over; one on which
 * there is an answer is not. */
TB_MUST tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                            struct tb_diag *diag, struct tc_nng_listener **out);
/* Before its socket is closed. */
void tc_nng_listener_close(struct tc_nng_listener *listener);

uint64_t tc_nng_listener_turns(
    const struct tc_nng_listener *listener); /* of its thread, one a second; any thread */
const char *tc_nng_listener_url(const struct tc_nng_listener *listener); /* port 0 resolved */

/* Those of one list of URLs, in its order, each on the socket that its user chooses. */
struct tc_nng_listeners {
  unsigned count;
  struct tc_nng_listener *at[TC_URLS_MAX];
};

TB_MUST tb_rc tc_nng_listeners_add(struct tc_nng_listeners *all, nng_socket socket, const char *url,
                                   struct tc_nng_tls *tls, struct tb_diag *diag);
void tc_nng_listeners_close(struct tc_nng_listeners *all); /* before their sockets */
/* Of the one that has turned least: it stands still as soon as one of them does. */
uint64_t tc_nng_listeners_turns(const struct tc_nng_listeners *all);
const char *tc_nng_listeners_url(const struct tc_nng_listeners *all,
                                 unsigned i); /* NULL: no more */

#endif
