/* SPDX-License-Identifier: Apache-2.0 */
/* The base of a server under test: a loop on a thread of its own, with throw-away certificates. */
#ifndef TT_TLS_HOST_H
#define TT_TLS_HOST_H

#include "collector/net/event_loop.h"
#include "collector/net/tls_connection.h"

struct tt_tls_host {
  struct tc_loop loop;
  struct tc_tls_loop tls;
  char dir[64]; /* certificates, see support/certs.h */
};

/* Makes folder, certificates and loop; ends the program if one of them cannot be made. Handlers that are not needed may
 * be NULL. tick() is called every 10 ms. */
void tt_tls_host_open(struct tt_tls_host *host, struct tc_loop_handler handler);
void tt_tls_host_start(struct tt_tls_host *host);
/* Stops the loop, whose stop() handler closes what the test has put on it, and removes the folder. */
void tt_tls_host_end(struct tt_tls_host *host);

#endif
