/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets inherited from the service manager (LISTEN_FDS, sd_listen_fds(3)): the port stays open over a
 * restart, and may be one that our user may not open.
 *
 * FileDescriptorName= of the .socket unit tells them apart: "agents" and "http". nng's sockets, feed and archive,
 * cannot be inherited.
 *
 * Memory    the caller owns the descriptors.
 * Threads   the main thread, before there are others: the environment is cleared.
 * Errors    TB_BROKEN with the descriptor, its name and the reason in diag.
 */
#ifndef TC_DAEMON_SOCKET_ACTIVATION_H
#define TC_DAEMON_SOCKET_ACTIVATION_H

#include "base/result.h"

enum { TC_SOCKET_ADDRESS_MAX = 63 };

struct tc_activation {
  struct tc_socket {
    int fd;                                  /* 0: not inherited */
    char address[TC_SOCKET_ADDRESS_MAX + 1]; /* HOST:PORT it listens on */
  } agents, http;
};

/* Ignores variables that are meant for another process (LISTEN_PID). */
TB_MUST tb_rc tc_activation_take(struct tc_activation *out, struct tb_diag *diag);

#endif
