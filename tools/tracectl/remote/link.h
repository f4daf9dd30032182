/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to one of a collector's two nng sockets, and what becomes of it.
 *
 * The dial does not block: nng 1.5.2 may never come back from a blocking one when the peer ends the
 * connection while it is negotiated. Once connected nng dials again by itself when the connection is
 * lost; a caller that waits for it looks at connected and lost_at.
 *
 * Threads   open and close on one. connected, lost_at and refusal change on nng's threads: they are read
 *           with the lock held, and changed is signalled.
 * Errors    TB_BROKEN: usage. TB_REFUSED: either side's TLS does not take the other. TB_IO: not to be
 *           reached, with what the operating system says.
 */
#ifndef TK_REMOTE_LINK_H
#define TK_REMOTE_LINK_H

#include <nng/nng.h>
#include <pthread.h>
#include <time.h>

#include "tools/tracectl/remote/endpoint.h"

struct tk_link {
  struct tk_endpoint where;
  nng_socket socket;
  bool socket_open;
  struct tc_nng_tls *tls;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* CLOCK_MONOTONIC */
  int dialer, pipe;       /* ids: the pipes that count, and the latest of them */
  bool connected;
  struct timespec lost_at;
  char refusal[256];
};

/* make opens the socket and sets its options; it is called before anything can come. */
TB_MUST tb_rc tk_link_open(const struct tk_client_args *args, enum tk_socket which,
                           int (*make)(nng_socket *socket, void *self), void *self,
                           struct tb_diag *diag, struct tk_link **out);
void tk_link_close(struct tk_link *link); /* accepts NULL */

/* With the lock held, where refusal is not empty. */
tb_rc tk_link_refused(const struct tk_link *link, struct tb_diag *diag);
tb_rc tk_link_fail(const struct tk_link *link, int rv, struct tb_diag *diag); /* nng's rv */

#endif
