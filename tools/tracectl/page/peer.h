/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whose process is at the other end of a connection over loopback: the kernel's own answer (sock_diag(7)). A cookie alone does not
 * say it, because browsers send the cookies of one port to the servers of all ports of a host. */
#ifndef TK_PAGE_PEER_H
#define TK_PAGE_PEER_H

#include <stdbool.h>

/* Returns a descriptor for tk_peer_is_ours(), or -1 if the kernel does not answer such questions. */
int tk_peers_open(void);

/* Is it our user's, root's (which forwards ports into containers and virtual machines), or that of the user who called sudo? Also true if
 * the kernel does not say; false if the peer has gone. */
bool tk_peer_is_ours(int peers_fd, int fd);

#endif
