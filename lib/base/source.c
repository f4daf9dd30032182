/* SPDX-License-Identifier: Apache-2.0 */
#include "base/source.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const uint64_t USER = UINT64_C(1) << 32; /* keeps user ids apart from IPv4 addresses */

static uint64_t user_of(int fd) {
  struct ucred peer;
  socklen_t len = sizeof peer;

  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? USER | peer.uid : 0;
}

uint64_t tb_source_of(int fd) {
  struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at;
  socklen_t len = sizeof at;
  uint64_t source = 0;

  if (getpeername(fd, (struct sockaddr *)&at, &len) != 0) return 0;
  switch (at.ss_family) {
  case AF_UNIX: return user_of(fd);
  case AF_INET: return ((const struct sockaddr_in *)&at)->sin_addr.s_addr;
  case AF_INET6:
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
      memcpy(&source, in6->sin6_addr.s6_addr + 12, 4);
    else
      memcpy(&source, in6->sin6_addr.s6_addr, sizeof source);
    return source;
  default: return 0;
  }
}
