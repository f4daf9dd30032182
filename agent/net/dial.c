/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

static tb_rc not_an_address(const char *text, struct tb_diag *diag) {
  if (strstr(text, "://") != NULL)
    return tb_fail(diag, TB_NOTFOUND, "\"%.80s\" is a URL: agents connect to HOST:PORT", text);
  return tb_fail(diag, TB_NOTFOUND,
                 "\"%.80s\" is not HOST:PORT (a collector's port for agents is 7070 unless "
                 "configured)",
                 text);
}

static tb_rc split(const char *text, struct tb_diag *diag, struct ta_addresses *out) {
  const char *colon = strrchr(text, ':'), *host = text;

  if (colon == NULL || colon == text || strstr(text, "://") != NULL)
    return not_an_address(text, diag);
  size_t n = (size_t)(colon - text);
  if (host[0] == '[' && host[n - 1] == ']') {
    host++;
    n -= 2;
  }
  char *end;
  unsigned long port = strtoul(colon + 1, &end, 10);
  if (n == 0 || n >= sizeof out->host || memchr(host, '[', n) != NULL ||
      memchr(host, ']', n) != NULL || colon[1] < '0' || colon[1] > '9' || *end != 0 || port == 0 ||
      port > 65535)
    return not_an_address(text, diag);
  memcpy(out->host, host, n);
  out->host[n] = 0;
  snprintf(out->port, sizeof out->port, "%lu", port);
  return TB_OK;
}

static tb_rc read_ready_file(const char *path, struct tb_diag *diag, struct ta_addresses *out) {
  static const char key[] = "agents=";
  char text[2048], *save = NULL;

  int fd = tb_small_file_open(AT_FDCWD, path);
  if (fd < 0)
    return tb_fail(diag, TB_NOTFOUND, "ready file %.100s: %s", path, tb_small_file_fault(errno));
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n < 0 ? 0 : n] = 0;
  for (char *line = strtok_r(text, "\r\n", &save); line != NULL;
       line = strtok_r(NULL, "\r\n", &save))
    if (strncmp(line, key, sizeof key - 1) == 0) return split(line + sizeof key - 1, diag, out);
  return tb_fail(diag, TB_NOTFOUND, "ready file %.100s has no line agents=HOST:PORT", path);
}

tb_rc ta_dial_check(const char *server, struct tb_diag *diag) {
  struct ta_addresses parts;

  if (server[0] != '@') return split(server, diag, &parts);
  return server[1] != 0 ? TB_OK : tb_fail(diag, TB_NOTFOUND, "@ without a file name");
}

static tb_rc name_server(const char *server, struct tb_diag *diag, struct ta_addresses *out) {
  *out = (struct ta_addresses){ .n = 0 };
  return server[0] == '@' ? read_ready_file(server + 1, diag, out) : split(server, diag, out);
}

static int look_up(struct ta_addresses *out, int flags) {
  struct addrinfo *list, hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags };

  int error = getaddrinfo(out->host, out->port, &hints, &list);
  if (error != 0) return error;
  for (const struct addrinfo *ai = list; ai != NULL && out->n < TA_ADDRESSES; ai = ai->ai_next) {
    memcpy(&out->at[out->n].addr, ai->ai_addr, ai->ai_addrlen);
    out->at[out->n++].len = ai->ai_addrlen;
  }
  freeaddrinfo(list);
  return 0;
}

/* Avoids getaddrinfo() for numeric addresses: it would read the resolver's configuration first. */
static bool is_number(const char *host) {
  unsigned char addr[16];

  return inet_pton(AF_INET, host, addr) == 1 || strchr(host, ':') != NULL;
}

tb_rc ta_dial_find_number(const char *server, struct tb_diag *diag, struct ta_addresses *out) {
  TB_TRY(name_server(server, diag, out));
  if (!is_number(out->host)) return TB_AGAIN;
  int error = look_up(out, AI_NUMERICHOST);
  if (error != 0) return tb_fail(diag, TB_NOTFOUND, "%.100s: %s", out->host, gai_strerror(error));
  return TB_OK;
}

tb_rc ta_dial_find(const char *server, struct tb_diag *diag, struct ta_addresses *out) {
  tb_rc rc = ta_dial_find_number(server, diag, out);

  if (rc != TB_AGAIN) return rc;
  /* AI_ADDRCONFIG would hide 127.0.0.1 on a host without network */
  bool loopback = strcmp(out->host, "localhost") == 0 || strncmp(out->host, "127.", 4) == 0;
  int error = look_up(out, loopback ? 0 : AI_ADDRCONFIG);
  if (error != 0) return tb_fail(diag, TB_NOTFOUND, "%.100s: %s", out->host, gai_strerror(error));
  return TB_OK;
}

static tb_rc fail(const struct ta_addresses *a, int error, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "%.100s:%s: %s", a->host, a->port, strerror(error));
}

static bool is_loopback(const struct sockaddr_storage *addr) {
  const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

  if (addr->ss_family == AF_INET) return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* Failures are ignored. TCP_USER_TIMEOUT is not used: it would also end a connection to a living peer that delays us with a
 * closed window. Heartbeats show whether the peer is alive. */
static void set_options(int fd, const struct sockaddr_storage *addr) {
  int on = 1;

  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  /* On loopback pacing is useless. If the system's default is bbr, its timers for pacing would take a tenth of our CPU time. */
  if (is_loopback(addr)) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

tb_rc ta_dial_next(struct ta_addresses *a, struct tb_diag *diag, int *out_fd) {
  int error = EADDRNOTAVAIL;

  while (a->tried < a->n) {
    unsigned i = a->tried++;
    int fd = socket(a->at[i].addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    set_options(fd, &a->at[i].addr);
    if (connect(fd, (struct sockaddr *)&a->at[i].addr, a->at[i].len) == 0 || errno == EINPROGRESS) {
      *out_fd = fd;
      return TB_OK;
    }
    error = errno;
    close(fd);
  }
  return fail(a, error, diag);
}

tb_rc ta_dial_result(const struct ta_addresses *a, int fd, struct tb_diag *diag) {
  int error = 0;
  socklen_t len = sizeof error;

  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
  return error == 0 ? TB_OK : fail(a, error, diag);
}
