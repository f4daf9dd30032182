/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* 0 or an errno. */
static int try_connect(int family, const struct sockaddr *at, socklen_t at_bytes, int ms) {
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
  socklen_t error_bytes = sizeof error;

  if (fd < 0) return errno;
  if (connect(fd, at, at_bytes) != 0) error = errno;
  if (error == EINPROGRESS) {
    struct pollfd wait = { .fd = fd, .events = POLLOUT };
    int ready = poll(&wait, 1, ms);
    if (ready == 0)
      error = ETIMEDOUT;
    else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0)
      error = errno;
  }
  close(fd);
  return error;
}

static tb_rc probe_ipc(const struct tk_endpoint *where, int ms, struct tb_diag *diag) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  const char *path = where->url + strlen("ipc://");

  if (strlen(path) >= sizeof at.sun_path)
    return tb_fail(diag, TB_BROKEN, "%.100s...: the socket's path is too long", where->shown);
  strcpy(at.sun_path, path);
  int error = try_connect(AF_UNIX, (struct sockaddr *)&at, sizeof at, ms);
  if (error == 0) return TB_OK;
  return tb_fail(diag, TB_IO, "no collector answers on %.120s: %s", where->shown, strerror(error));
}

static tb_rc probe_tcp(const struct tk_endpoint *where, int ms, struct tb_diag *diag) {
  struct addrinfo *found = NULL, hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
  char port[8];
  int error = ETIMEDOUT;

  snprintf(port, sizeof port, "%u", where->at.port);
  int unknown = getaddrinfo(where->at.host, port, &hints, &found);
  if (unknown != 0)
    return tb_fail(diag, TB_IO, "%.100s: %s", where->at.host, gai_strerror(unknown));
  for (struct addrinfo *a = found; a != NULL && error != 0; a = a->ai_next)
    error = try_connect(a->ai_family, a->ai_addr, a->ai_addrlen, ms);
  freeaddrinfo(found);
  if (error == 0) return TB_OK;
  return tb_fail(diag, TB_IO, "no collector answers on %.120s: %s", where->shown, strerror(error));
}

tb_rc tk_probe(const struct tk_endpoint *where, int ms, struct tb_diag *diag) {
  return where->ipc ? probe_ipc(where, ms, diag) : probe_tcp(where, ms, diag);
}
