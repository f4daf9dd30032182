/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "collector/http.h"
#include "collector/loop.h"
#include "support/certs.h"
#include "support/peer.h"

struct server {
  struct tc_loop loop;
  struct tc_tls_loop tls;
  struct tc_http *http;
  const char *unhealthy;
  char dir[64], address[300];
  unsigned port;
};

static tb_rc metrics(void *self, struct tb_buf *out) {
  (void)self;
  tb_buf_text(out, "tracecollect_up 1\n");
  return out->rc;
}

static const char *unhealthy(void *self) {
  const struct server *s = self;

  return s->unhealthy;
}

static void nothing(void *self) {
  (void)self;
}
static void no_message(void *self, enum tc_loop_sender from, void *msg) {
  (void)self;
  (void)from;
  (void)msg;
}

static void on_tick(void *self) {
  struct server *s = self;

  tc_tls_loop_tick(&s->tls);
  tc_http_tick(s->http);
}

static void on_stop(void *self) {
  struct server *s = self;

  tc_http_close(s->http);
  tc_tls_loop_close(&s->tls);
}

static struct server *server_start(const char *address) {
  struct server *s = calloc(1, sizeof *s);
  struct tc_loop_handler handler = { s, no_message, nothing, on_tick, on_stop };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  strcpy(s->dir, "/tmp/tt_http_XXXXXX");
  cr_assert_not_null(mkdtemp(s->dir));
  tt_certs_make(s->dir);
  cr_assert_eq(tc_loop_open(&s->loop, 10, handler), TB_OK);
  tc_tls_loop_init(&s->tls, &s->loop.uv);
  struct tc_http_env env = { &s->tls, address, s->dir, 16, { s, metrics, unhealthy }, 0 };
  cr_assert_eq(tc_http_open(&env, &diag, &s->http), TB_OK, "%s", diag.text);
  strcpy(s->address, tc_http_address(s->http));
  s->port = (unsigned)atoi(strrchr(s->address, ':') + 1);
  cr_assert_eq(tc_loop_start(&s->loop), TB_OK);
  return s;
}

static void drop(enum tc_loop_sender from, void *msg) {
  (void)from;
  (void)msg;
}

static void server_stop(struct server *s) {
  char command[128];

  tc_loop_stop(&s->loop);
  tc_loop_join(&s->loop, drop);
  tc_http_free(s->http);
  snprintf(command, sizeof command, "rm -r %s", s->dir);
  cr_assert_eq(system(command), 0);
  free(s);
}

static int dial(const struct server *s) {
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_port = htons((uint16_t)s->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  struct timeval wait = { .tv_sec = 10 };
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

/* Says text in one go or byte by byte; the whole answer. */
static void ask(const struct server *s, const char *text, size_t piece, char answer[4096]) {
  int fd = dial(s);
  size_t len = 0;
  ssize_t n;

  for (size_t at = 0, all = strlen(text); at < all; at += piece)
    if (send(fd, text + at, all - at < piece ? all - at : piece, MSG_NOSIGNAL) < 0) break;
  while (len < 4095 && (n = recv(fd, answer + len, 4095 - len, 0)) > 0) len += (size_t)n;
  answer[len] = '\0';
  close(fd);
}

static void expect(const struct server *s, const char *text, const char *status, const char *body) {
  char answer[4096];

  ask(s, text, 100000, answer);
  cr_assert_eq(strncmp(answer, status, strlen(status)), 0, "%s", answer);
  cr_assert_not_null(strstr(answer, body), "%s", answer);
}

Test(http, metrics_and_health_are_served) {
  struct server *s = server_start("127.0.0.1:0");
  char answer[4096];

  expect(s, "GET /metrics HTTP/1.1\r\nHost: localhost:7073\r\n\r\n", "HTTP/1.1 200 OK",
         "\r\n\r\ntracecollect_up 1\n");
  expect(s, "GET /healthz?x=1 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", "HTTP/1.1 200 OK",
         "\r\n\r\nok\n");
  s->unhealthy = "disk full";
  expect(s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 503", "disk full\n");
  ask(s, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 100, answer);
  cr_assert_not_null(strstr(answer, "Content-Length: 18"), "%s", answer);
  cr_assert_null(strstr(answer, "tracecollect_up"));
  ask(s, "GET /metrics HTTP/1.1\r\nAccept: */*\r\nHost: localhost\r\n\r\n", 1, answer);
  cr_assert_not_null(strstr(answer, "tracecollect_up 1"), "byte by byte: %s", answer);
  server_stop(s);
}

Test(http, what_is_not_served_is_said) {
  struct server *s = server_start("127.0.0.1:0");
  static char big[20000];

  expect(s, "GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404", "no such page");
  expect(s, "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405",
         "Allow: GET, HEAD");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
         "HTTP/1.1 413", "no body");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421", "another name");
  expect(s, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 421", "another name");
  expect(s, "\x16\x03\x01 this is not HTTP\r\n\r\n", "HTTP/1.1 400", "not a request");
  snprintf(big, sizeof big, "GET /%01500d HTTP/1.1\r\nHost: localhost\r\n\r\n", 0);
  expect(s, big, "HTTP/1.1 414", "URL too long");
  snprintf(big, sizeof big, "GET / HTTP/1.1\r\nX: %012000d", 0);
  expect(s, big, "HTTP/1.1 431", "head too long");
  server_stop(s);
}

static void ask_tls(const struct server *s, const char *name, const char *text, char answer[4096]) {
  char address[64];
  struct tt_peer_terms terms = { .address = address, .ca_dir = s->dir, .name = name };
  struct tt_peer peer;
  size_t len = 0, n;

  snprintf(address, sizeof address, "127.0.0.1:%u", s->port);
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  cr_assert(tt_peer_send(&peer, text, strlen(text)), "%s", peer.why);
  while (len < 4095 && SSL_read_ex(peer.ssl, answer + len, 4095 - len, &n) == 1) len += n;
  answer[len] = '\0';
  tt_peer_close(&peer);
}

Test(http, off_loopback_metrics_want_a_readers_certificate) {
  struct server *s = server_start("0.0.0.0:0");
  char answer[4096];

  ask_tls(s, "reader", "GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", answer);
  cr_assert_not_null(strstr(answer, "tracecollect_up 1"), "%s", answer);
  ask_tls(s, "agent", "GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", answer);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 403"), "%s", answer);
  cr_assert_not_null(strstr(answer, "tracecollect:reader/NAME is needed"), "%s", answer);
  ask_tls(s, NULL, "GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", answer);
  cr_assert_not_null(strstr(answer, "no certificate"), "%s", answer);
  ask_tls(s, NULL, "GET /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n", answer);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 200 OK"), "%s", answer);
  server_stop(s);
}
