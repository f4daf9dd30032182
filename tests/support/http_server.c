/* SPDX-License-Identifier: Apache-2.0 */
#include "support/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/patience.h"

static tb_rc metrics(void *self, struct tb_buf *out) {
  struct tt_http *s = self;

  s->scrapes++;
  while (s->metrics_wait) usleep(1000);
  tb_buf_text(out, "tracecollect_up 1\n");
  return out->rc;
}

static const char *unhealthy(void *self) {
  struct tt_http *s = self;

  s->health_asked++;
  while (s->loop_waits) usleep(1000);
  return s->unhealthy;
}

static void readiness(void *self, struct tc_readiness *out) {
  struct tt_http *s = self;
  struct tc_readiness_facts facts = { .now_wall_ns = 1000000000,
                                      .certs = s->host.dir,
                                      .running = s->unhealthy == NULL };

  *out = (struct tc_readiness){ 0 };
  tc_readiness_update(out, &facts);
}

static void on_tick(void *self) {
  struct tt_http *s = self;

  tc_tls_loop_tick(&s->host.tls);
  tc_http_tick(s->http);
}

static void on_stop(void *self) {
  struct tt_http *s = self;

  tc_http_close(s->http);
  tc_tls_loop_close(&s->host.tls);
}

struct tc_http_limits tt_http_limits(void) {
  return (struct tc_http_limits){ .connections_max = 16,
                                  .owner_questions_max = 16,
                                  .owner_live_max = 4,
                                  .head_bytes_max = 8 << 10,
                                  .body_bytes_max = 64 << 10,
                                  .jobs_max = 3,
                                  .owner_jobs_max = 2,
                                  .job_expire_ms = 30000,
                                  .request_ms = 30000,
                                  .idle_ms = 30000,
                                  .stall_ms = 30000,
                                  .live_max = 4,
                                  .live_bytes_max = 1 << 20,
                                  .heartbeat_ms = 30000 };
}

bool tt_http_metrics_are_open;

static unsigned port_of(const char *address) {
  return *address != '\0' ? (unsigned)atoi(strrchr(address, ':') + 1) : 0;
}

struct tt_http *tt_http_start(const char *address, const struct tc_http_limits *limits,
                              struct tc_query *query) {
  return tt_http_start_with(address, limits, query, NULL);
}

struct tt_http *tt_http_start_with(const char *address, const struct tc_http_limits *limits,
                                   struct tc_query *query, struct tc_leases *leases) {
  struct tt_http *s = calloc(1, sizeof *s);
  struct tc_loop_handler handler = { .self = s, .tick = on_tick, .stop = on_stop };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tc_http_set_workers();
  tt_tls_host_open(&s->host, handler);
  snprintf(s->path, sizeof s->path, "%s/http.sock", s->host.dir);
  struct tc_http_env env = { .tls = &s->host.tls,
                             .address = address,
                             .path = s->path,
                             .metrics_address = "127.0.0.1:0",
                             .metrics_are_open = tt_http_metrics_are_open,
                             .certs = s->host.dir,
                             .limits = limits != NULL ? *limits : tt_http_limits(),
                             .source = { s, metrics, unhealthy, readiness },
                             .metrics = &s->metrics,
                             .query = query,
                             .leases = leases,
                             .started_wall_ns = 1000000000 };
  if (tc_http_open(&env, &diag, &s->http) != TB_OK) {
    fprintf(stderr, "%s\n", diag.text);
    abort();
  }
  strcpy(s->address, tc_http_address(s->http));
  s->port = port_of(s->address);
  s->metrics_port = port_of(tc_http_metrics_address(s->http));
  tt_tls_host_start(&s->host);
  return s;
}

void tt_http_stop(struct tt_http *s) {
  tt_tls_host_end(&s->host);
  tc_http_free(s->http);
  free(s);
}

int tt_http_dial(const struct tt_http *s) {
  return tt_http_dial_from(s, INADDR_LOOPBACK);
}

static int socket_in_time(int family) {
  struct timeval wait = { .tv_sec = TT_PATIENCE_S };
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  return fd;
}

int tt_http_dial_path(const struct tt_http *s) {
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  int fd = socket_in_time(AF_UNIX);

  strcpy(to.sun_path, s->path);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
    perror("connect");
    abort();
  }
  return fd;
}

static int dial(uint32_t address, unsigned port) {
  struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket_in_time(AF_INET);

  if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
      connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
    perror("connect");
    abort();
  }
  return fd;
}

int tt_http_dial_from(const struct tt_http *s, uint32_t address) {
  return dial(address, s->port);
}

int tt_http_dial_metrics(const struct tt_http *s) {
  return dial(INADDR_LOOPBACK, s->metrics_port);
}

/* A closed connection is not an error here: the test sees it in what it reads. */
void tt_http_say(int fd, const void *bytes, size_t n) {
  for (ssize_t sent; n > 0; n -= (size_t)sent, bytes = (const char *)bytes + sent)
    if ((sent = send(fd, bytes, n, MSG_NOSIGNAL)) < 0) return;
}

size_t tt_http_hear(int fd, char *out, const char *until) {
  size_t len = 0;
  ssize_t n;

  out[0] = '\0';
  while (len < TT_HTTP_ANSWER_BYTES - 1 &&
         (n = recv(fd, out + len, TT_HTTP_ANSWER_BYTES - 1 - len, 0)) > 0) {
    len += (size_t)n;
    out[len] = '\0';
    if (until != NULL && memmem(out, len, until, strlen(until)) != NULL) break;
  }
  return len;
}

void tt_http_say_in_pieces(int fd, const char *text, size_t piece) {
  for (size_t at = 0, all = strlen(text); at < all; at += piece)
    tt_http_say(fd, text + at, all - at < piece ? all - at : piece);
}

size_t tt_http_ask_at(int fd, const char *text, size_t piece, char *out) {
  struct pollfd answered = { .fd = fd, .events = POLLIN };

  tt_http_say_in_pieces(fd, text, piece);
  (void)poll(&answered, 1, TT_PATIENCE_MS); /* a client that closes before gets no answer */
  shutdown(fd, SHUT_WR);
  size_t n = tt_http_hear(fd, out, NULL);
  close(fd);
  return n;
}

size_t tt_http_ask(const struct tt_http *s, const char *text, size_t piece, char *out) {
  return tt_http_ask_at(tt_http_dial(s), text, piece, out);
}
