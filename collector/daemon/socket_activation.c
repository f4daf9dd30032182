/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/socket_activation.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3, FDS_MAX = 64 };

static tb_rc address_of(int fd, char out[TC_SOCKET_ADDRESS_MAX + 1]) {
  struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
  socklen_t len = sizeof at;
  char host[INET6_ADDRSTRLEN];

  if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) return TB_IO;
  if (at.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&at;

    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    snprintf(out, TC_SOCKET_ADDRESS_MAX + 1, "%s:%u", host, ntohs(in->sin_port));
    return TB_OK;
  }
  if (at.ss_family != AF_INET6) return TB_BROKEN;
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at;
  inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
  snprintf(out, TC_SOCKET_ADDRESS_MAX + 1, "[%s]:%u", host, ntohs(in6->sin6_port));
  return TB_OK;
}

static bool listens(int fd) {
  int type = 0, accepts = 0;
  socklen_t len = sizeof type;

  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
         (len = sizeof accepts,
          getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 && accepts != 0);
}

static bool make_ours(int fd) {
  int flags = fcntl(fd, F_GETFL);

  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static tb_rc take_one(struct tc_activation *a, int fd, const char *name, struct tb_diag *diag) {
  struct tc_socket *place = strcmp(name, "agents") == 0 ? &a->agents
                            : strcmp(name, "http") == 0 ? &a->http
                                                        : NULL;

  if (place == NULL)
    return tb_fail(diag, TB_BROKEN,
                   "descriptor %d from the service manager is named \"%.60s\": FileDescriptorName= "
                   "must be agents or http",
                   fd, name);
  if (place->fd != 0)
    return tb_fail(diag, TB_BROKEN, "descriptor %d from the service manager is a second \"%s\"", fd,
                   name);
  if (!listens(fd) || address_of(fd, place->address) != TB_OK)
    return tb_fail(diag, TB_BROKEN,
                   "descriptor %d from the service manager, \"%s\": is not a listening TCP socket",
                   fd, name);
  if (!make_ours(fd))
    return tb_fail(diag, TB_BROKEN, "descriptor %d from the service manager, \"%s\": %s", fd, name,
                   strerror(errno));
  place->fd = fd;
  return TB_OK;
}

/* Names are separated by colons; there may be fewer than descriptors. */
static tb_rc take_all(struct tc_activation *a, long count, const char *names,
                      struct tb_diag *diag) {
  for (int fd = FIRST_FD; fd < FIRST_FD + count; fd++) {
    char name[64];
    size_t len = strcspn(names, ":");

    snprintf(name, sizeof name, "%.*s", (int)len, names);
    names += len + (names[len] == ':');
    TB_TRY(take_one(a, fd, name, diag));
  }
  return TB_OK;
}

tb_rc tc_activation_take(struct tc_activation *out, struct tb_diag *diag) {
  const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"),
             *names = getenv("LISTEN_FDNAMES");
  tb_rc rc = TB_OK;

  *out = (struct tc_activation){ .agents = { .fd = 0 } };
  if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != getpid()) return TB_OK;
  long count = strtol(fds, NULL, 10);
  if (count < 0 || count > FDS_MAX)
    rc = tb_fail(diag, TB_BROKEN, "LISTEN_FDS: \"%.20s\" is not a number of sockets", fds);
  else
    rc = take_all(out, count, names != NULL ? names : "", diag);
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  return rc;
}
