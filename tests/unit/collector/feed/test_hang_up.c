/* SPDX-License-Identifier: Apache-2.0 */
/* A program of its own, because test_nng replaces sendmsg(). Peers of nng's listener hang up at
 * each stage of the greeting: nothing of ours watches the greeting, and peers that connect
 * afterwards are let in. */
#include <criterion/criterion.h>
#include <nng/nng.h>

#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/net/nng_listener.h"
#include "nng/close.h"
#include "nng/stream.h"
#include "support/patience.h"

enum { TIMES = 50 };

static const unsigned char greeting[] = { 0, 'S', 'P', 0, 0, 0x21, 0, 0 };
static char folder[64], url[TC_URL_BYTES];
static nng_socket pub;

static void publish(void) {
  char wanted[128];
  struct tb_diag diag;

  tc_nng_streams_init();
  tb_diag_clear(&diag);
  strcpy(folder, "/tmp/tc_hang_up_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  snprintf(wanted, sizeof wanted, "ipc://%s/p.sock", folder);
  cr_assert_eq(nng_pub0_open(&pub), 0);
  cr_assert_eq(tc_nng_listen(pub, wanted, NULL, &diag, url), TB_OK, "%s", diag.text);
}

static void end(void) {
  tc_nng_close(pub);
  rmdir(folder);
}

TestSuite(hang_up, .init = publish, .fini = end);

static int come(void) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  strcpy(at.sun_path, url + strlen("ipc://"));
  cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

/* nng loses a pipe that is closed before its socket has taken it: once a message has arrived,
 * both sockets have taken their pipe. */
static bool one_is_heard(nng_socket sub) {
  char byte = 0;
  size_t n = sizeof byte;

  cr_assert_eq(nng_send(pub, &byte, sizeof byte, 0), 0);
  return nng_recv(sub, &byte, &n, NNG_FLAG_NONBLOCK) == 0;
}

static void expect_that_one_comes(void) {
  bool heard = false;
  nng_socket sub;

  cr_assert_eq(nng_sub0_open(&sub), 0);
  cr_assert_eq(nng_socket_set(sub, NNG_OPT_SUB_SUBSCRIBE, "", 0), 0);
  cr_assert_eq(nng_dial(sub, url, NULL, NNG_FLAG_NONBLOCK), 0);
  TT_WAIT_UNTIL(heard || (heard = one_is_heard(sub)));
  tc_nng_close(sub);
}

static void hang_up(size_t said, bool hears) {
  char heard[sizeof greeting];

  for (int i = 0; i < TIMES; i++) {
    int fd = come();
    (void)!send(fd, greeting, said, MSG_NOSIGNAL);
    if (hears) cr_assert_eq(recv(fd, heard, sizeof heard, MSG_WAITALL), sizeof heard);
    close(fd);
  }
  expect_that_one_comes();
}

Test(hang_up, before_the_greeting_stops_no_listener) {
  hang_up(0, false);
}

Test(hang_up, within_the_greeting_stops_no_listener) {
  for (size_t said = 1; said < sizeof greeting; said += 3) {
    hang_up(said, false);
    hang_up(said, true);
  }
}

Test(hang_up, after_the_greeting_stops_no_listener) {
  hang_up(sizeof greeting, false);
  hang_up(sizeof greeting, true);
}
