/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/net/tcp_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/hostport.h"
#include "collector/base/logger.h"

/* Few accepts in a turn, so that accepted peers are served before newer ones can displace them. */
enum {
  ACCEPTS_A_TURN = 8,
  PAUSE_MS = 10,
  SHORT_PAUSE_MS = 100,
  BACKLOG = 1024,
  SOCKET_MODE = 0660
};

struct tc_listener {
  uv_poll_t poll;
  uv_timer_t pause;
  int fd, spare_fd;
  unsigned kept;        /* number of descriptors kept free */
  unsigned turned_away; /* peers turned away in this turn */
  int handles;          /* number of handles that are still closing */
  struct tc_listener_sink sink;
  char address[TC_ADDRESS_MAX];
  dev_t dev; /* of the unix socket's file; ino 0: not a unix socket */
  ino_t ino;
};

static int open_spare(void) {
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void name_of(int fd, const struct sockaddr_storage *from, char out[TC_PEER_MAX + 1]) {
  char host[INET6_ADDRSTRLEN] = "?";

  if (from->ss_family == AF_UNIX) {
    struct ucred user = { .uid = (uid_t)-1 };
    socklen_t len = sizeof user;

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &len);
    snprintf(out, TC_PEER_MAX + 1, "uid:%u", (unsigned)user.uid);
  } else if (from->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)from;

    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    snprintf(out, TC_PEER_MAX + 1, "%s:%u", host, ntohs(in->sin_port));
  } else {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    snprintf(out, TC_PEER_MAX + 1, "[%s]:%u", host, ntohs(in6->sin6_port));
  }
}

/* Closes the spare descriptor to have one for accepting a peer from the queue and closing it. */
static bool turn_one_away(struct tc_listener *l) {
  if (l->spare_fd < 0) l->spare_fd = open_spare();
  if (l->spare_fd < 0) return false;
  close(l->spare_fd);
  int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  l->turned_away += fd >= 0;
  l->spare_fd = open_spare();
  return fd >= 0;
}

static void on_poll(uv_poll_t *handle, int status, int events);

static void on_pause_over(uv_timer_t *timer) {
  struct tc_listener *l = timer->data;

  uv_poll_start(&l->poll, UV_READABLE, on_poll);
}

/* Stops polling for a while: the socket stays readable, so it would call us again at once. */
static void pause_for(struct tc_listener *l, uint64_t ms) {
  uv_poll_stop(&l->poll);
  uv_timer_start(&l->pause, on_pause_over, ms, 0);
}

/* Moves fd to the lowest free number, if a descriptor below it was closed: has_descriptor() judges by the number. */
static int take_lowest(int fd) {
  int lowest = fcntl(fd, F_DUPFD_CLOEXEC, 0);

  if (lowest < 0) return fd;
  int other = lowest < fd ? fd : lowest;
  close(other);
  return lowest < fd ? lowest : fd;
}

/* Returns whether the peer may keep its descriptor. The kernel assigns the lowest free number, so all below are in use. Reads
 * the limit each time, as prlimit(1) may change it. */
static bool has_descriptor(const struct tc_listener *l, int *fd) {
  struct rlimit limit;

  if (l->kept == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  if (limit.rlim_cur > (rlim_t)*fd + l->kept) return true;
  unsigned left = limit.rlim_cur > (rlim_t)*fd ? (unsigned)(limit.rlim_cur - (rlim_t)*fd) : 0;
  if (l->sink.takes_last == NULL || !l->sink.takes_last(l->sink.self, left)) return false;
  *fd = take_lowest(*fd);
  return true;
}

enum taken { TAKEN, NONE_WAITS, NOT_READY, SHORT };

static enum taken take_one(struct tc_listener *l) {
  struct sockaddr_storage from;
  socklen_t len = sizeof from;
  char peer[TC_PEER_MAX + 1];

  if (!l->sink.ready(l->sink.self)) return NOT_READY;
  int fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) return TAKEN;
  if (fd < 0 && errno == EAGAIN) return NONE_WAITS;
  if (fd < 0) return turn_one_away(l) ? TAKEN : SHORT;
  if (!has_descriptor(l, &fd)) {
    close(fd);
    l->turned_away++;
    return TAKEN;
  }
  name_of(fd, &from, peer);
  l->sink.accepted(l->sink.self, fd, peer);
  return TAKEN;
}

static void on_poll(uv_poll_t *handle, int status, int events) {
  struct tc_listener *l = handle->data;
  enum taken taken = TAKEN;

  (void)status;
  (void)events;
  l->turned_away = 0;
  for (int i = 0; i < ACCEPTS_A_TURN && taken == TAKEN; i++) {
    if (uv_is_closing((uv_handle_t *)handle)) return; /* the sink closed the listener */
    taken = take_one(l);
  }
  if (taken == NOT_READY) pause_for(l, PAUSE_MS);
  if (taken != SHORT && l->turned_away == 0) return;
  tc_log(TC_ERROR, "listen",
         "address=%s: out of descriptors or memory, %u peers were turned away in this turn",
         l->address, l->turned_away);
  pause_for(l, SHORT_PAUSE_MS);
}

static int listen_on(const struct addrinfo *at) {
  int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

  if (fd < 0) return -1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
    return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}

static tb_rc bind_address(const struct tb_hostport *where, const char *address,
                          struct tb_diag *diag, int *out_fd) {
  struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
  struct addrinfo *found;
  char port[8];
  int fd = -1;

  snprintf(port, sizeof port, "%u", where->port);
  int failed = getaddrinfo(where->host, port, &want, &found);
  if (failed != 0) return tb_fail(diag, TB_IO, "listen on %s: %s", address, gai_strerror(failed));
  for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) fd = listen_on(at);
  int why = errno;
  freeaddrinfo(found);
  if (fd < 0)
    return tb_fail(diag, TB_IO, "listen on %s: %s%s", address, strerror(why),
                   why == EADDRINUSE ? "; another collector? listen.* name the ports" : "");
  *out_fd = fd;
  return TB_OK;
}

static unsigned real_port(int fd) {
  struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
  socklen_t len = sizeof at;

  if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) return 0;
  return ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
                                       : ((struct sockaddr_in6 *)&at)->sin6_port);
}

void tc_listener_keep_free(struct tc_listener *l, unsigned descriptors) {
  l->kept = descriptors;
}

tb_rc tc_listener_adopt(uv_loop_t *uv, int fd, const char *address, struct tc_listener_sink sink,
                        struct tb_diag *diag, struct tc_listener **out) {
  struct tc_listener *l = calloc(1, sizeof *l);

  if (l == NULL || uv_poll_init_socket(uv, &l->poll, fd) != 0) {
    free(l);
    close(fd);
    return tb_fail(diag, TB_NOMEM, "listen on %s: out of memory", address);
  }
  l->fd = fd;
  l->spare_fd = open_spare();
  l->sink = sink;
  snprintf(l->address, sizeof l->address, "%s", address);
  uv_timer_init(uv, &l->pause);
  l->poll.data = l->pause.data = l;
  uv_poll_start(&l->poll, UV_READABLE, on_poll);
  *out = l;
  return TB_OK;
}

tb_rc tc_listener_open(uv_loop_t *uv, const char *address, struct tc_listener_sink sink,
                       struct tb_diag *diag, struct tc_listener **out) {
  struct tb_hostport where;
  char real[TC_ADDRESS_MAX];
  int fd;

  TB_TRY(tb_hostport_parse(address, diag, &where));
  TB_TRY(bind_address(&where, address, diag, &fd));
  snprintf(real, sizeof real, strchr(where.host, ':') != NULL ? "[%s]:%u" : "%s:%u", where.host,
           real_port(fd));
  return tc_listener_adopt(uv, fd, real, sink, diag, out);
}

/* --- a unix socket ------------------------------------------------------------------------------ */

static tb_rc path_fail(struct tb_diag *diag, const char *path, const char *why) {
  return tb_fail(diag, TB_IO, "listen on %s: %s", path, why);
}

/* Checks that path is free or a socket that nobody listens on. */
static tb_rc check_name(const char *path, const struct sockaddr_un *at, struct tb_diag *diag) {
  struct stat there;

  if (lstat(path, &there) != 0)
    return errno == ENOENT ? TB_OK : path_fail(diag, path, strerror(errno));
  if (!S_ISSOCK(there.st_mode)) return path_fail(diag, path, "the file there is not a socket");
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return path_fail(diag, path, strerror(errno));
  int why = connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ? EAGAIN : errno;
  close(fd);
  if (why == ECONNREFUSED || why == ENOENT) return TB_OK;
  return path_fail(diag, path, why == EAGAIN ? "another program listens there" : strerror(why));
}

static bool listen_at(int fd, const struct sockaddr_un *at, struct stat *out) {
  if (unlink(at->sun_path) != 0 && errno != ENOENT) return false;
  return bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 &&
         chmod(at->sun_path, SOCKET_MODE) == 0 && listen(fd, BACKLOG) == 0 &&
         lstat(at->sun_path, out) == 0;
}

/* Makes a temporary name in the same folder, not longer than "http.sock". */
static bool name_beside(const char *path, struct sockaddr_un *out) {
  const char *slash = strrchr(path, '/');
  int folder = slash != NULL ? (int)(slash - path) + 1 : 0;

  *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
  return snprintf(out->sun_path, sizeof out->sun_path, "%.*s.h%d", folder, path, (int)getpid()) <
         (int)sizeof out->sun_path;
}

tb_rc tc_listener_open_path(uv_loop_t *uv, const char *path, struct tc_listener_sink sink,
                            struct tb_diag *diag, struct tc_listener **out) {
  struct sockaddr_un at = { .sun_family = AF_UNIX }, beside;
  struct stat file;

  if (snprintf(at.sun_path, sizeof at.sun_path, "%s", path) >= (int)sizeof at.sun_path ||
      !name_beside(path, &beside))
    return path_fail(diag, path, "the path is too long for a socket");
  TB_TRY(check_name(path, &at, diag));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return path_fail(diag, path, strerror(errno));
  if (!listen_at(fd, &beside, &file) || rename(beside.sun_path, path) != 0) {
    int why = errno;
    unlink(beside.sun_path);
    close(fd);
    return path_fail(diag, path, strerror(why));
  }
  tb_rc rc = tc_listener_adopt(uv, fd, path, sink, diag, out);
  if (rc != TB_OK) {
    unlink(path);
    return rc;
  }
  (*out)->dev = file.st_dev;
  (*out)->ino = file.st_ino;
  return TB_OK;
}

/* Keeps the name if another collector has taken it. */
static void unlink_ours(const struct tc_listener *l) {
  struct stat there;

  if (l->ino != 0 && lstat(l->address, &there) == 0 && there.st_dev == l->dev &&
      there.st_ino == l->ino)
    unlink(l->address);
}

static void on_handle_closed(uv_handle_t *handle) {
  struct tc_listener *l = handle->data;

  if (--l->handles > 0) return;
  if (l->spare_fd >= 0) close(l->spare_fd);
  free(l);
}

void tc_listener_close(struct tc_listener *l) {
  if (l == NULL) return;
  unlink_ours(l);
  l->handles = 2;
  uv_close((uv_handle_t *)&l->poll, on_handle_closed);
  /* Close at once and not in the handle's callback, so that peers find the port closed; but after libuv has released the
   * number, which another thread may get next. */
  close(l->fd);
  uv_close((uv_handle_t *)&l->pause, on_handle_closed);
}

const char *tc_listener_address(const struct tc_listener *l) {
  return l->address;
}
