/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of its own thread with throw-away certificates: what a server under test stands on. */
#ifndef TT_TLS_HOST_H
#define TT_TLS_HOST_H

#include "collector/net/event_loop.h"
#include "collector/net/tls_connection.h"

struct tt_tls_host {
  struct tc_loop loop;
  struct tc_tls_loop tls;
  char dir[64]; /* certificates, see support/certs.h */
};

/* Folder, certificates, loop; ends the program where one cannot be had. A handler may leave out what it
 * has no use for. tick() is called every 10 ms. */
void tt_tls_host_open(struct tt_tls_host *host, struct tc_loop_handler handler);
void tt_tls_host_start(struct tt_tls_host *host);
/* Stops the loop, whose stop() handler closes what the test has put on it, and removes the folder. */
void tt_tls_host_end(struct tt_tls_host *host);

#endif
