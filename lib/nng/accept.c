/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/accept.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/source.h"
#include "nng/greeting.h"

enum { PLACES = 8192, FDS = 1 << 20, TURNED_AWAY_AT_ONCE = 64 };

struct place {
  int fd, listener;
  uint64_t source;
};

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_un path;
  struct sockaddr_storage storage;
};

/* The lock protects the variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tc_nng_accept_limits limits; /* connections_max 0: no limits */
static struct place places[PLACES];        /* the first `used` are in use */
static atomic_bool is_counted[FDS];        /* by descriptor; read without the lock */
static unsigned used;

void tc_nng_accept_limit(const struct tc_nng_accept_limits *fresh) {
  pthread_mutex_lock(&lock);
  limits = fresh != NULL ? *fresh : (struct tc_nng_accept_limits){ 0 };
  pthread_mutex_unlock(&lock);
}

/* --- counting ---------------------------------------------------------------------------------- */

static void free_place(int fd) {
  pthread_mutex_lock(&lock);
  for (unsigned i = used; i-- > 0;)
    if (places[i].fd == fd) places[i] = places[--used];
  is_counted[fd] = false;
  pthread_mutex_unlock(&lock);
}

typedef int (*close_call)(int fd);
static close_call real_close;

static void find_call(void) {
  *(void **)&real_close = dlsym(RTLD_NEXT, "close");
}

/* Called for any descriptor of the process: the place of a counted one is freed before its number can be reused. Weak, as
 * accept() is, because the simulated disk of tests has its own close(). */
__attribute__((weak)) int close(int fd) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, find_call);
  if (fd >= 0 && fd < FDS && is_counted[fd]) free_place(fd);
  return real_close(fd);
}

static const char *over_share(int listener, uint64_t source) {
  unsigned all = 0, same = 0;

  for (unsigned i = 0; i < used; i++) {
    if (places[i].listener != listener) continue;
    all++;
    same += places[i].source == source;
  }
  if (same >= limits.source_max)
    return "this address or user has readers.source_connections_max connections here";
  if (all >= limits.connections_max) return "there are readers.connections_max connections here";
  return NULL;
}

/* The kernel uses the lowest free number: all below fd are in use. */
static bool has_descriptor(int fd) {
  unsigned kept = used < limits.few ? limits.descriptors_kept / 2 : limits.descriptors_kept;
  struct rlimit limit;

  return fd < FDS && (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > (rlim_t)fd + kept);
}

/* Returns the reason to refuse a peer, or NULL. */
static const char *reason_to_refuse(int listener, int fd, uint64_t source) {
  if (!has_descriptor(fd)) return "no descriptors are left for readers";
  return over_share(listener, source);
}

static const char *take_place(int listener, int fd) {
  uint64_t source = tb_source_of(fd);

  if (limits.connections_max == 0) return NULL;
  const char *why = reason_to_refuse(listener, fd, source);
  if (why != NULL) return why;
  if (used == PLACES) return "there are readers.connections_max connections here";
  places[used++] = (struct place){ fd, listener, source };
  is_counted[fd] = true;
  return NULL;
}

static void name_of(int fd, const union address *from, char out[TC_NNG_PEER_MAX + 1]) {
  char host[INET6_ADDRSTRLEN] = "?";

  if (from->any.sa_family == AF_UNIX) {
    snprintf(out, TC_NNG_PEER_MAX + 1, "uid:%u", (unsigned)tb_source_of(fd));
  } else if (from->any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &from->v4.sin_addr, host, sizeof host);
    snprintf(out, TC_NNG_PEER_MAX + 1, "%s:%u", host, ntohs(from->v4.sin_port));
  } else {
    inet_ntop(AF_INET6, &from->v6.sin6_addr, host, sizeof host);
    snprintf(out, TC_NNG_PEER_MAX + 1, "[%s]:%u", host, ntohs(from->v6.sin6_port));
  }
}

/* Returns false after closing fd. */
static bool admit(int listener, int fd, const union address *from) {
  char peer[TC_NNG_PEER_MAX + 1];

  pthread_mutex_lock(&lock);
  const char *why = take_place(listener, fd);
  struct tc_nng_accept_limits now = limits;
  pthread_mutex_unlock(&lock);
  if (why == NULL) return true;
  name_of(fd, from, peer);
  close(fd);
  if (now.turned_away != NULL) now.turned_away(now.self, peer, why);
  return false;
}

/* Keepalives detect a peer whose host is down. nng enables them without setting their times. */
static void set_keepalive(int fd) {
  const int idle_s = 60, every_s = 15, count = 4;

  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* nng passes no address. After TURNED_AWAY_AT_ONCE refused peers EAGAIN lets nng's thread handle its other sockets. */
__attribute__((weak)) int accept(int listener, struct sockaddr *address, socklen_t *address_len) {
  for (unsigned i = 0; i < TURNED_AWAY_AT_ONCE; i++) {
    union address from = { .any.sa_family = AF_UNIX };
    socklen_t len = sizeof from;
    int fd = accept4(listener, &from.any, &len, SOCK_CLOEXEC);

    if (fd < 0) return -1;
    if (!admit(listener, fd, &from)) continue;
    if (from.any.sa_family == AF_UNIX)
      tc__greeting_begin(fd);
    else
      set_keepalive(fd);
    if (address != NULL && address_len != NULL) {
      memcpy(address, &from, *address_len < len ? *address_len : len);
      *address_len = len;
    }
    return fd;
  }
  errno = EAGAIN;
  return -1;
}
