/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of nng's listeners that are silent, or too many. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nng/nng.h>

#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/net/nng_listener.h"
#include "nng/accept.h"
#include "nng/close.h"
#include "nng/greeting.h"
#include "nng/tls_engine.h"
#include "tests/support/certs.h"
#include "tests/support/patience.h"

enum { MANY = 40, LEAST = 8 };

static char folder[64];
static atomic_uint turned_away, refused, gave_way, pipes;
static _Atomic(const char *) last_why;

static void make_folder(void) {
  strcpy(folder, "/tmp/tc_accept_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  tt_certs_make(folder);
}

static void remove_folder(void) {
  char command[128];

  tc_nng_accept_limit(NULL);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(accept, .init = make_folder, .fini = remove_folder);

static void count_away(void *self, const char *peer, const char *why) {
  (void)self;
  cr_assert_neq(*peer, '\0');
  last_why = why;
  turned_away++;
}

static void count_refused(void *self, const char *peer, const char *why) {
  (void)self, (void)peer;
  if (strstr(why, "too long") != NULL) refused++;
  if (strstr(why, "gives way") != NULL) gave_way++;
}

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  (void)event, (void)self;
  tc_nng_tls_pipe_came(pipe, NULL, NULL);
  pipes++;
}

/* Each listener over TLS or on a unix socket. */
struct publisher {
  nng_socket socket;
  struct tc_nng_tls *tls;
  char url[TC_URL_BYTES];
};

static SSL_CTX *context(const SSL_METHOD *method, const char *name) {
  SSL_CTX *ctx = SSL_CTX_new(method);
  char path[128];

  snprintf(path, sizeof path, "%s/ca.pem", folder);
  cr_assert_eq(SSL_CTX_load_verify_locations(ctx, path, NULL), 1);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  snprintf(path, sizeof path, "%s/%s.pem", folder, name);
  cr_assert_eq(SSL_CTX_use_certificate_chain_file(ctx, path), 1);
  snprintf(path, sizeof path, "%s/%s.key", folder, name);
  cr_assert_eq(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM), 1);
  return ctx;
}

static struct tc_nng_tls *terms_of(SSL_CTX *ctx, bool server, unsigned greeting_ms) {
  struct tc_nng_terms terms = { .ctx = ctx,
                                .server = server,
                                .peer_act = server ? TC_ACT_FEED : TC_ACT_SERVE,
                                .refused = count_refused,
                                .greeting_ms = greeting_ms,
                                .greeting_max = LEAST };
  struct tc_nng_tls *tls;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_nng_tls_new(&terms, &diag, &tls), TB_OK, "%s", diag.text);
  SSL_CTX_free(ctx);
  return tls;
}

static struct publisher publish(bool over_tls, unsigned greeting_ms) {
  struct publisher p = { 0 };
  char url[128];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(nng_pub0_open(&p.socket), 0);
  cr_assert_eq(nng_pipe_notify(p.socket, NNG_PIPE_EV_ADD_PRE, on_pipe, NULL), 0);
  if (over_tls) p.tls = terms_of(context(TLS_server_method(), "server"), true, greeting_ms);
  snprintf(url, sizeof url, over_tls ? "tls+tcp://127.0.0.1:0" : "ipc://%s/p.sock", folder);
  cr_assert_eq(tc_nng_listen(p.socket, url, p.tls, &diag, p.url), TB_OK, "%s", diag.text);
  return p;
}

static void end(struct publisher *p) {
  tc_nng_close(p->socket);
  tc_nng_tls_free(p->tls);
}

/* Connects; if `address` is not 1, from another address of this host. */
static int come(const struct publisher *p, unsigned address) {
  struct sockaddr_un path = { .sun_family = AF_UNIX };
  struct sockaddr_in to = { .sin_family = AF_INET }, from = { .sin_family = AF_INET };
  struct timeval wait = { .tv_sec = TT_PATIENCE_S };
  int fd = socket(p->tls != NULL ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  if (p->tls == NULL) {
    strcpy(path.sun_path, p->url + strlen("ipc://"));
    cr_assert_eq(connect(fd, (struct sockaddr *)&path, sizeof path), 0);
    return fd;
  }
  to.sin_port = htons((uint16_t)atoi(strrchr(p->url, ':') + 1));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + address);
  cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
  cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

static bool has_ended(int fd) {
  char bytes[64];
  ssize_t n;

  while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) continue;
  return n == 0 || errno == ECONNRESET;
}

struct reader {
  nng_socket socket;
  struct tc_nng_tls *tls;
};

/* Returns a connected reader. */
static struct reader read_from(const struct publisher *p) {
  struct reader r = { .tls = terms_of(context(TLS_client_method(), "reader"), false, 0) };
  nng_dialer dialer;

  cr_assert_eq(nng_sub0_open(&r.socket), 0);
  cr_assert_eq(nng_dialer_create(&dialer, r.socket, p->url), 0);
  cr_assert_eq(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(r.tls)), 0);
  cr_assert_eq(nng_dialer_start(dialer, NNG_FLAG_NONBLOCK), 0);
  TT_WAIT_UNTIL(pipes > 0);
  return r;
}

static void stop(struct reader *r) {
  tc_nng_close(r->socket);
  tc_nng_tls_free(r->tls);
}

Test(accept, silent_and_slow_peers_over_tls_are_ended_and_the_listener_lives) {
  struct publisher p = publish(true, 200);
  static const unsigned char hello[LEAST] = { 22, 3, 1, 2, 0, 1, 0 }; /* the begin of a greeting */
  int fds[LEAST];

  for (int i = 0; i < LEAST; i++) {
    fds[i] = come(&p, 1);
    if (i % 2 == 1) cr_assert_eq(send(fds[i], hello, (size_t)i, MSG_NOSIGNAL), i);
  }
  TT_WAIT_UNTIL((tc_nng_tls_expire(), refused == LEAST));
  for (int i = 0; i < LEAST; i++) {
    cr_assert(has_ended(fds[i]));
    close(fds[i]);
  }
  struct reader reader = read_from(&p);
  uint64_t came_ns = tc_mono_ns();
  /* A reader that sends nothing more stays connected. */
  TT_WAIT_UNTIL(tc_mono_ns() - came_ns > 2 * 200 * UINT64_C(1000000));
  tc_nng_tls_expire();
  cr_assert_eq(refused, LEAST);
  stop(&reader);
  end(&p);
}

/* More connections from one address than its listener accepts at once, and one from another address. */
Test(accept, handshakes_that_never_end_leave_room_for_readers) {
  struct publisher p = publish(true, 1000 * TT_PATIENCE_MS);
  const struct tc_nng_accept_limits limits = { MANY / 2, MANY / 2, 0, 0, count_away, NULL };
  int other = come(&p, 2), fds[MANY];
  char byte;

  tc_nng_accept_limit(&limits);
  for (unsigned i = 0; i < MANY; i++) {
    fds[i] = come(&p, 1);
    TT_WAIT_UNTIL(gave_way + turned_away + LEAST >= i + 2);
  }
  struct reader reader = read_from(&p);
  cr_assert_lt(recv(other, &byte, 1, MSG_DONTWAIT), 0);
  cr_assert_eq(errno, EAGAIN, "many of one address push out no other");
  cr_assert_eq(refused, 0);
  for (int i = 0; i < MANY; i++) close(fds[i]);
  close(other);
  stop(&reader);
  end(&p);
}

/* nng's own deadline starts again with each byte. */
Test(accept, a_greeting_byte_by_byte_on_a_unix_socket_has_one_deadline) {
  static const unsigned char greeting[] = { 0, 'S', 'P', 0, 0, 0x21, 0, 0 };
  struct publisher p = publish(false, 0);
  unsigned char byte;

  tc_nng_greeting_limit(1);
  int slow = come(&p, 1);
  cr_assert_eq(recv(slow, &byte, 1, 0), 1); /* the connection is accepted */
  uint64_t came_ns = tc_mono_ns();
  TT_WAIT_UNTIL(tc_mono_ns() - came_ns >= 1000000);
  cr_assert_eq(send(slow, greeting, 1, MSG_NOSIGNAL), 1);
  cr_assert(has_ended(slow));
  cr_assert_eq(pipes, 0);
  tc_nng_greeting_limit(1000 * TT_PATIENCE_MS);
  int piecemeal = come(&p, 1), whole = come(&p, 1);
  for (unsigned i = 0; i < sizeof greeting; i++)
    cr_assert_eq(send(piecemeal, greeting + i, 1, MSG_NOSIGNAL), 1);
  cr_assert_eq(send(whole, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
  TT_WAIT_UNTIL(pipes == 2);
  tc_nng_greeting_limit(0);
  close(slow);
  close(piecemeal);
  close(whole);
  end(&p);
}

static void expect_share(bool over_tls) {
  struct publisher p = publish(over_tls, 0);
  const struct tc_nng_accept_limits limits = { LEAST, LEAST / 2, 0, 0, count_away, NULL };
  int fds[MANY];

  tc_nng_accept_limit(&limits);
  for (int i = 0; i < MANY; i++) fds[i] = come(&p, 1);
  TT_WAIT_UNTIL(turned_away == MANY - LEAST / 2);
  cr_assert_not_null(strstr(last_why, "readers.source_connections_max"));
  if (over_tls) {
    int others[MANY];
    for (int i = 0; i < MANY; i++) others[i] = come(&p, 2 + (unsigned)i);
    TT_WAIT_UNTIL(turned_away == 2 * (MANY - LEAST / 2));
    cr_assert_not_null(strstr(last_why, "readers.connections_max"));
    for (int i = 0; i < MANY; i++) close(others[i]);
  }
  for (int i = 0; i < MANY; i++) close(fds[i]);
  /* Connections that have ended do not count. */
  for (unsigned before = turned_away;; before = turned_away) {
    int fd = come(&p, 1);
    char byte;
    if (!over_tls && recv(fd, &byte, 1, 0) == 1) break;
    usleep(1000);
    if (over_tls && turned_away == before && recv(fd, &byte, 1, MSG_DONTWAIT) < 0) break;
    close(fd);
  }
  end(&p);
}

Test(accept, one_address_and_one_listener_have_a_share_over_tls) {
  expect_share(true);
}

Test(accept, one_user_has_a_share_of_a_unix_socket) {
  expect_share(false);
}

static unsigned count_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  unsigned n = 0;

  while (readdir(dir) != NULL) n++;
  closedir(dir);
  return n;
}

/* A connection does not count as soon as its descriptor is closed. */
Test(accept, who_comes_after_one_that_has_ended_is_let_in) {
  struct publisher p = publish(false, 0);
  const struct tc_nng_accept_limits limits = { 1, 1, 0, 0, count_away, NULL };
  unsigned before = count_descriptors();
  char byte;

  tc_nng_accept_limit(&limits);
  for (unsigned i = 0; i < MANY; i++) {
    int fd = come(&p, 1);
    cr_assert_eq(recv(fd, &byte, 1, 0), 1, "%u: %s", i, turned_away > 0 ? last_why : "");
    close(fd);
    TT_WAIT_UNTIL(count_descriptors() <= before);
  }
  cr_assert_eq(turned_away, 0);
  end(&p);
}

/* Connects many peers at once. */
Test(accept, a_burst_gets_no_more_than_its_share) {
  struct publisher p = publish(false, 0);
  const struct tc_nng_accept_limits limits = { LEAST, LEAST, 0, 0, count_away, NULL };
  int fds[10 * MANY], in = 0;
  char byte;

  tc_nng_accept_limit(&limits);
  for (unsigned i = 0; i < 10 * MANY; i++) fds[i] = come(&p, 1);
  TT_WAIT_UNTIL(turned_away == 10 * MANY - LEAST);
  for (unsigned i = 0; i < 10 * MANY; i++) {
    in += recv(fds[i], &byte, 1, 0) == 1 ? 1 : 0;
    close(fds[i]);
  }
  cr_assert_eq(in, LEAST);
  end(&p);
}

Test(accept, the_last_descriptors_are_not_taken) {
  struct publisher p = publish(true, 0);
  struct rlimit before, little;
  int probe = dup(0), fds[MANY];

  getrlimit(RLIMIT_NOFILE, &before);
  little = before;
  little.rlim_cur = (rlim_t)probe + 2 * MANY;
  const struct tc_nng_accept_limits limits = { 1000, 1000, MANY, 0, count_away, NULL };
  tc_nng_accept_limit(&limits);
  cr_assert_eq(setrlimit(RLIMIT_NOFILE, &little), 0);
  /* each takes a descriptor here and one in nng */
  for (int i = 0; i < MANY; i++) fds[i] = come(&p, 1);
  TT_WAIT_UNTIL(turned_away >= MANY / 2);
  int free_one = open("/dev/null", O_RDONLY | O_CLOEXEC);
  cr_assert_geq(free_one, 0);
  cr_assert_str_eq(last_why, "no descriptors are left for readers");
  close(free_one);
  for (int i = 0; i < MANY; i++) close(fds[i]);
  setrlimit(RLIMIT_NOFILE, &before);
  close(probe);
  end(&p);
}
