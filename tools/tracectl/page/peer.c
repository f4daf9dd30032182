/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/page/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 4096 };

int tk_peers_open(void) {
  const struct timeval patience = { .tv_sec = 1 };
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

/* The peer's socket, which has our addresses the other way round. */
static bool find_ends(int fd, struct inet_diag_sockid *out) {
  struct sockaddr_in peer, own;
  socklen_t peer_len = sizeof peer, own_len = sizeof own;

  if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0 ||
      getsockname(fd, (struct sockaddr *)&own, &own_len) != 0)
    return false;
  *out = (struct inet_diag_sockid){ .idiag_sport = peer.sin_port,
                                    .idiag_dport = own.sin_port,
                                    .idiag_src = { peer.sin_addr.s_addr },
                                    .idiag_dst = { own.sin_addr.s_addr },
                                    .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } };
  return true;
}

static bool send_question(int peers_fd, const struct inet_diag_sockid *id) {
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 ask;
  } question = { .head = { .nlmsg_len = sizeof question,
                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                           .nlmsg_flags = NLM_F_REQUEST,
                           .nlmsg_seq = id->idiag_sport },
                 .ask = { .sdiag_family = AF_INET,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_states = UINT32_MAX,
                          .id = *id } };

  return send(peers_fd, &question, sizeof question, 0) == (ssize_t)sizeof question;
}

static bool is_trusted(uid_t uid) {
  const char *sudo = getenv("SUDO_UID");

  return uid == geteuid() || uid == 0 ||
         (geteuid() == 0 && sudo != NULL && strtoul(sudo, NULL, 10) == uid);
}

bool tk_peer_is_ours(int peers_fd, int fd) {
  union {
    struct nlmsghdr head;
    unsigned char bytes[ANSWER_BYTES];
  } answer;
  struct inet_diag_sockid id;

  if (peers_fd < 0) return true;
  if (!find_ends(fd, &id)) return false;
  if (!send_question(peers_fd, &id)) return true;
  ssize_t n;
  do /* an answer that came too late for an earlier question is dropped */
    n = recv(peers_fd, &answer, sizeof answer, 0);
  while (n >= (ssize_t)sizeof answer.head && answer.head.nlmsg_seq != id.idiag_sport);
  if (n < (ssize_t)sizeof answer.head) return true;
  if (answer.head.nlmsg_type == NLMSG_ERROR) {
    const struct nlmsgerr *error = NLMSG_DATA(&answer.head);
    return error->error != -ENOENT;
  }
  const struct inet_diag_msg *peer = NLMSG_DATA(&answer.head);
  if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)NLMSG_LENGTH(sizeof *peer))
    return true;
  return peer->idiag_state == TCP_ESTABLISHED && is_trusted(peer->idiag_uid);
}
