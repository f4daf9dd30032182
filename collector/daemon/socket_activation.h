/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that the service manager opened and hands over (LISTEN_FDS, sd_listen_fds(3)): the
 * port stays open over a restart, and may be one that our user could not open.
 *
 * Their names distinguish them, FileDescriptorName= of their .socket unit: "agents" and "http". The nng
 * sockets, feed and archive, cannot be handed over.
 *
 * Memory the caller that takes the descriptors owns them.
 * Threads   the main thread, before there are others: the environment is cleared.
 * Errors    TB_BROKEN with the descriptor, its name and the reason in diag.
 */
#ifndef TC_DAEMON_SOCKET_ACTIVATION_H
#define TC_DAEMON_SOCKET_ACTIVATION_H

#include "base/result.h"

enum { TC_SOCKET_ADDRESS_MAX = 63 };

struct tc_activation {
  struct tc_socket {
    int fd;                                  /* 0: not handed over */
    char address[TC_SOCKET_ADDRESS_MAX + 1]; /* HOST:PORT it listens on */
  } agents, http;
};

/* Sockets of another process's environment are left alone. */
TB_MUST tb_rc tc_activation_take(struct tc_activation *out, struct tb_diag *diag);

#endif
