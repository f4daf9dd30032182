/* SPDX-License-Identifier: Apache-2.0 */
/* Here and not in test_nng, whose sendmsg() is its own. */
#include <criterion/criterion.h>
#include <nng/nng.h>

#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "nng/close.h"
#include "nng/stream.h"
#include "support/patience.h"

static atomic_uint pipes;

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  (void)pipe, (void)event, (void)self;
  pipes++;
}

/* Of nng's listener alone, which nobody watches. */
Test(hang_up, before_the_greeting_stops_no_listener) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  char folder[] = "/tmp/tc_hang_up_XXXXXX", url[160];
  nng_socket pub, sub;

  tc_nng_streams_init();
  cr_assert_not_null(mkdtemp(folder));
  snprintf(at.sun_path, sizeof at.sun_path, "%s/p.sock", folder);
  snprintf(url, sizeof url, "ipc://%s", at.sun_path);
  cr_assert_eq(nng_pub0_open(&pub), 0);
  cr_assert_eq(nng_listen(pub, url, NULL, 0), 0);
  for (int i = 0; i < 50; i++) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);
  }
  cr_assert_eq(nng_pipe_notify(pub, NNG_PIPE_EV_ADD_POST, on_pipe, NULL), 0);
  cr_assert_eq(nng_sub0_open(&sub), 0);
  cr_assert_eq(nng_dial(sub, url, NULL, NNG_FLAG_NONBLOCK), 0);
  TT_WAIT_UNTIL(pipes == 1);
  tc_nng_close(sub);
  tc_nng_close(pub);
  unlink(at.sun_path);
  rmdir(folder);
}
