/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the server that the user named.
 *
 * server is HOST:PORT, [ADDRESS]:PORT, or @FILE: a collector's --ready-file, whose line agents=HOST:PORT
 * is used. The file is read at each look-up, since the port of a collector on port 0 changes.
 *
 * Memory    none.
 * Threads   find() may wait for the resolver: only agent/net/lookup.h's thread calls it.
 * Errors    TB_NOTFOUND: no such file, line, host or port. TB_IO: no socket, or no connection.
 *           The reason is in diag.
 */
#ifndef TA_NET_DIAL_H
#define TA_NET_DIAL_H

#include <sys/socket.h>

#include "base/result.h"

enum { TA_ADDRESSES = 8 };

struct ta_addresses {
  char host[256], port[8];
  unsigned n, tried;
  struct {
    struct sockaddr_storage addr;
    socklen_t len;
  } at[TA_ADDRESSES];
};

/* Checks server's syntax without a look-up. */
TB_MUST tb_rc ta_dial_check(const char *server, struct tb_diag *diag);
/* TB_AGAIN: the host is a name, which find() must look up. */
TB_MUST tb_rc ta_dial_find_number(const char *server, struct tb_diag *diag,
                                  struct ta_addresses *out);
TB_MUST tb_rc ta_dial_find(const char *server, struct tb_diag *diag, struct ta_addresses *out);
/* Begins to connect to the next untried address; the connect is finished when the socket is writable. */
TB_MUST tb_rc ta_dial_next(struct ta_addresses *addresses, struct tb_diag *diag, int *out_fd);
/* Result of the connect, once the socket is writable. */
TB_MUST tb_rc ta_dial_result(const struct ta_addresses *addresses, int fd, struct tb_diag *diag);

#endif
