/* SPDX-License-Identifier: Apache-2.0 */
/* The transport by itself: a loop turned by hand; plaintext over a socket pair if TLS would only
 * hide what is shown; contexts made from good and bad files. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/net/tls_connection.h"
#include "support/certs.h"
#include "support/patience.h"

struct end { /* one connection as its owner sees it */
  struct tc_tls *tls;
  int peer; /* the other end of the pair */
  size_t taken, turn_max, take_max;
  bool hold, drained, closed;
  char why[200], bytes[64];
};

static uv_loop_t uv;
static struct tc_tls_loop loop;

static void on_open(void *self) {
  (void)self;
}

static tb_rc on_bytes(void *self, const unsigned char *bytes, size_t n, size_t *used) {
  struct end *e = self;

  if (e->hold && n > e->take_max) n = e->take_max;
  if (e->taken < sizeof e->bytes)
    memcpy(e->bytes + e->taken, bytes,
           n < sizeof e->bytes - e->taken ? n : sizeof e->bytes - e->taken);
  e->taken += n;
  *used = n;
  return e->hold ? TB_AGAIN : TB_OK;
}

static void on_drained(void *self) {
  ((struct end *)self)->drained = true;
}

static void on_closed(void *self, const char *why) {
  struct end *e = self;

  e->closed = true;
  snprintf(e->why, sizeof e->why, "%s", why);
}

static void begin(void) {
  cr_assert_eq(uv_loop_init(&uv), 0);
  tc_tls_loop_init(&loop, &uv);
}

static void finish(void) {
  tc_tls_loop_close(&loop);
  uv_run(&uv, UV_RUN_DEFAULT);
  cr_assert_eq(uv_loop_close(&uv), 0);
}

static void open_end(struct end *e) {
  struct tc_tls_sink sink = {
    .self = e, .open = on_open, .bytes = on_bytes, .drained = on_drained, .closed = on_closed
  };
  int pair[2];

  memset(e, 0, sizeof *e);
  cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  e->peer = pair[1];
  cr_assert_eq(tc_tls_accept(&loop, NULL, pair[0], sink, &e->tls), TB_OK);
}

static void turn(void) {
  uv_run(&uv, UV_RUN_NOWAIT);
}

#define TURN_UNTIL(condition)                                                                      \
  do {                                                                                             \
    for (int turns_ = 0; !(condition) && turns_ < TT_PATIENCE_MS; turns_++) {                      \
      turn();                                                                                      \
      if (!(condition)) poll(NULL, 0, 1);                                                          \
    }                                                                                              \
    cr_assert((condition), "in vain: " #condition);                                                \
  } while (0)

static size_t fill(int fd) {
  static char junk[1 << 16];
  size_t sent = 0;
  ssize_t n;

  while ((n = send(fd, junk, sizeof junk, MSG_NOSIGNAL)) > 0) sent += (size_t)n;
  return sent;
}

Test(tls, a_turn_takes_a_bounded_share_and_the_next_connection_follows) {
  struct end a, b;

  begin();
  open_end(&a);
  open_end(&b);
  size_t sent = fill(a.peer);
  cr_assert_gt(sent, 2 * TC_TLS_TURN_BYTES);
  cr_assert_eq(send(b.peer, "hello", 5, 0), 5);
  turn();
  cr_assert_leq(a.taken, TC_TLS_TURN_BYTES);
  TURN_UNTIL(b.taken == 5);
  cr_assert_lt(a.taken, sent, "the quiet one did not wait for the loud one's end");
  TURN_UNTIL(a.taken == sent);
  tc_tls_abort(a.tls, "test");
  tc_tls_abort(b.tls, "test");
  TURN_UNTIL(a.closed && b.closed);
  close(a.peer), close(b.peer);
  finish();
}

Test(tls, a_held_sink_gets_every_byte_once_and_in_order_later) {
  struct end a;

  begin();
  open_end(&a);
  a.hold = true;
  a.take_max = 3;
  cr_assert_eq(send(a.peer, "abcdefgh", 8, 0), 8);
  TURN_UNTIL(a.taken == 3);
  cr_assert_eq(send(a.peer, "ijkl", 4, 0), 4);
  for (int i = 0; i < 20; i++) turn();
  cr_assert_eq(a.taken, 3, "nothing is read while it is held");
  tc_tls_resume(a.tls);
  TURN_UNTIL(a.taken == 6);
  a.hold = false;
  tc_tls_resume(a.tls);
  TURN_UNTIL(a.taken == 12);
  cr_assert_eq(memcmp(a.bytes, "abcdefghijkl", 12), 0);
  tc_tls_abort(a.tls, NULL);
  TURN_UNTIL(a.closed);
  close(a.peer);
  finish();
}

Test(tls, what_the_socket_does_not_take_is_kept_and_close_waits_for_it) {
  struct end a;
  static unsigned char big[4 << 20], got[1 << 16];
  size_t received = 0;
  ssize_t n = 1;

  begin();
  open_end(&a);
  for (size_t i = 0; i < sizeof big; i++) big[i] = (unsigned char)(i * 7);
  tc_tls_send(a.tls, big, sizeof big);
  cr_assert_gt(tc_tls_unsent(a.tls), 0);
  tc_tls_close(a.tls, "done");
  while (n > 0) {
    turn();
    n = recv(a.peer, got, sizeof got, 0);
    if (n < 0 && errno == EAGAIN) {
      n = 1;
      continue;
    }
    for (ssize_t i = 0; i < n; i++) cr_assert_eq(got[i], big[received + (size_t)i]);
    received += (size_t)n;
  }
  cr_assert_eq(n, 0, "the end comes after the last byte");
  cr_assert_eq(received, sizeof big);
  cr_assert_not(a.closed, "it lingers until the peer ends too");
  close(a.peer);
  TURN_UNTIL(a.closed);
  cr_assert_str_eq(a.why, "done");
  finish();
}

/* Bytes sent from the front of the buffer make room for the bytes that are added. */
Test(tls, what_is_kept_stays_in_order_whatever_is_added) {
  struct end a;
  static unsigned char piece[1 << 17], got[1 << 16];
  size_t sent = 0, received = 0;
  unsigned size = 1;

  begin();
  open_end(&a);
  while (received < 64 << 20) {
    if (sent - received < 8 << 20) {
      size = size * 1103515245 + 12345;
      size_t n = (size >> 8) % sizeof piece;
      for (size_t i = 0; i < n; i++) piece[i] = (unsigned char)((sent + i) * 7 >> 5);
      tc_tls_send(a.tls, piece, n);
      sent += n;
    }
    turn();
    ssize_t n = recv(a.peer, got, (size >> 4) % sizeof got, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++)
      cr_assert_eq(got[i], (unsigned char)((received + (size_t)i) * 7 >> 5));
    if (n > 0) received += (size_t)n;
  }
  tc_tls_abort(a.tls, NULL);
  close(a.peer);
  TURN_UNTIL(a.closed);
  finish();
}

Test(tls, a_peer_that_never_ends_is_left_after_a_while) {
  struct end a;

  begin();
  open_end(&a);
  tc_tls_close(a.tls, "enough");
  uint64_t began = uv_hrtime();
  while (!a.closed) {
    turn();
    poll(NULL, 0, 1);
    tc_tls_loop_tick(&loop);
    cr_assert_lt(uv_hrtime() - began, TT_PATIENCE_S * UINT64_C(1000000000));
  }
  cr_assert_geq(uv_hrtime() - began, UINT64_C(1000000) * (TC_TLS_LINGER_MS - 100));
  close(a.peer);
  finish();
}

Test(tls, the_peers_end_is_an_orderly_one) {
  struct end a;

  begin();
  open_end(&a);
  close(a.peer);
  TURN_UNTIL(a.closed);
  cr_assert_str_eq(a.why, "");
  finish();
}

/* --- contexts ---------------------------------------------------------------------------------- */

static char dir[] = "/tmp/tt_tls_XXXXXX";

static void make_dir(void) {
  cr_assert_not_null(mkdtemp(dir));
  tt_certs_make(dir);
}

static void remove_dir(void) {
  char command[64];

  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

static void expect_context(tb_rc rc, const char *in_text) {
  struct tc_tls_terms terms = { .alpn = "x" };
  struct tb_diag diag;
  SSL_CTX *ctx = NULL;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_tls_context_new(dir, &terms, &diag, &ctx), rc, "%s", diag.text);
  cr_assert_not_null(strstr(diag.text, in_text), "\"%s\" is not in \"%s\"", in_text, diag.text);
  SSL_CTX_free(ctx);
}

static void run(const char *fmt) {
  char command[300];

  snprintf(command, sizeof command, "cd %s && %s", dir, fmt);
  cr_assert_eq(system(command), 0);
}

Test(tls, a_context_names_the_file_that_is_wrong) {
  make_dir();
  expect_context(TB_OK, "");
  run("cp agent.key server.key"); /* half of a pair was replaced */
  expect_context(TB_CORRUPT, "server.key: ");
  run("echo junk > server.key");
  expect_context(TB_CORRUPT, "server.key: ");
  run("rm server.key");
  expect_context(TB_IO, "server.key: No such file");
  run("echo junk > ca.pem");
  expect_context(TB_IO, "server.key: No such file");
  remove_dir();
}

Test(tls, a_certificate_of_another_authority_makes_no_context) {
  make_dir();
  run("mkdir -p other");
  char other[64];
  snprintf(other, sizeof other, "%s/other", dir);
  tt_certs_make(other);
  run("cp other/server.pem other/server.key .");
  expect_context(TB_CORRUPT, "server.pem: ");
  remove_dir();
}
