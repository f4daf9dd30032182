/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/net/tcp_listener.h"
#include "support/patience.h"

enum { PEERS = 40, LOOK_MS = 350 };

struct acceptor {
  uv_loop_t uv;
  uv_prepare_t turn;
  uv_timer_t timer;
  struct tc_listener *listener;
  struct rlimit limit; /* as it was */
  unsigned turns, accepted_count;
  bool gives_way; /* the oldest one, for a new one */
  unsigned gave_way;
  int accepted[PEERS], peers[PEERS];
};

static bool ready(void *self) {
  (void)self;
  return true;
}

static void accepted(void *self, int fd, const char *peer) {
  struct acceptor *d = self;

  cr_assert(strncmp(peer, "127.0.0.1:", 10) == 0);
  d->accepted[d->accepted_count++] = fd;
}

static bool takes_last(void *self, unsigned left) {
  struct acceptor *d = self;

  cr_assert_leq(left, 10, "%u", left);
  if (d->gives_way) close(d->accepted[d->gave_way++]);
  return d->gives_way;
}

static void on_turn(uv_prepare_t *handle) {
  ((struct acceptor *)handle->data)->turns++;
}

static void on_timer(uv_timer_t *timer) {
  uv_stop(timer->loop);
}

static void run_for(struct acceptor *d, uint64_t ms) {
  uv_timer_start(&d->timer, on_timer, ms, 0);
  uv_run(&d->uv, UV_RUN_DEFAULT);
}

/* All peers wait in the kernel's queue before the loop turns for the first time. */
static void open_door(struct acceptor *d) {
  struct tc_listener_sink sink = {
    .self = d, .ready = ready, .accepted = accepted, .takes_last = takes_last
  };
  struct sockaddr_in at = { .sin_family = AF_INET };
  struct tb_diag diag;

  *d = (struct acceptor){ .turns = 0 };
  tb_diag_clear(&diag);
  cr_assert_eq(uv_loop_init(&d->uv), 0);
  cr_assert_eq(tc_listener_open(&d->uv, "127.0.0.1:0", sink, &diag, &d->listener), TB_OK, "%s",
               diag.text);
  uv_prepare_init(&d->uv, &d->turn);
  uv_timer_init(&d->uv, &d->timer);
  d->turn.data = d;
  uv_prepare_start(&d->turn, on_turn);
  uv_run(&d->uv, UV_RUN_NOWAIT); /* libuv opens what it needs */

  inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
  at.sin_port = htons((uint16_t)atoi(strrchr(tc_listener_address(d->listener), ':') + 1));
  for (int i = 0; i < PEERS; i++) {
    d->peers[i] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(d->peers[i], (struct sockaddr *)&at, sizeof at), 0, "%s", strerror(errno));
  }
  cr_assert_eq(getrlimit(RLIMIT_NOFILE, &d->limit), 0);
}

/* So that exactly n more descriptors can be had. */
static void leave(struct acceptor *d, unsigned n) {
  struct rlimit limit = d->limit;
  int next = dup(0);

  close(next);
  limit.rlim_cur = (rlim_t)next + n;
  cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static unsigned closed_by_us(struct acceptor *d) {
  unsigned n = 0;
  char byte;

  for (int i = 0; i < PEERS; i++)
    n += d->peers[i] >= 0 && recv(d->peers[i], &byte, 1, MSG_DONTWAIT) == 0;
  return n;
}

/* A machine that stood still turns a loop whose timer is due before it looks at its sockets. Answers how often it ran. */
static unsigned run_until_closed(struct acceptor *d, unsigned n) {
  unsigned runs = 0;

  for (int ms = 0; closed_by_us(d) < n && ms < TT_PATIENCE_MS; ms += 50, runs++) run_for(d, 50);
  cr_expect_eq(closed_by_us(d), n);
  return runs;
}

static void close_door(struct acceptor *d) {
  setrlimit(RLIMIT_NOFILE, &d->limit);
  for (unsigned i = d->gave_way; i < d->accepted_count; i++) close(d->accepted[i]);
  for (int i = 0; i < PEERS; i++) close(d->peers[i]);
  tc_listener_close(d->listener);
  uv_close((uv_handle_t *)&d->turn, NULL);
  uv_close((uv_handle_t *)&d->timer, NULL);
  uv_run(&d->uv, UV_RUN_DEFAULT);
  cr_assert_eq(uv_loop_close(&d->uv), 0);
}

Test(listener, without_descriptors_peers_hear_of_it_and_the_loop_rests) {
  struct acceptor d;

  open_door(&d);
  leave(&d, 0);
  d.turns = 0;
  unsigned runs = run_until_closed(&d, PEERS); /* each is taken with the spare descriptor */
  run_for(&d, LOOK_MS);
  cr_expect_eq(d.accepted_count, 0);
  cr_expect_leq(d.turns, 16 + 4 * runs, "%u turns of the loop in %d ms", d.turns, LOOK_MS);
  close_door(&d);
}

Test(listener, the_last_descriptors_are_kept_for_others) {
  struct acceptor d;

  open_door(&d);
  leave(&d, 15);
  tc_listener_keep_free(d.listener, 10);
  run_until_closed(&d, PEERS - 5);
  cr_expect_eq(d.accepted_count, 5);
  int fd = open("/dev/null", O_RDONLY);
  cr_expect_geq(fd, 0, "somebody else's descriptor: %s", strerror(errno));
  close(fd);
  close_door(&d);
}

Test(listener, one_that_goes_for_a_new_one_leaves_as_many_descriptors) {
  struct acceptor d;
  struct rlimit limit;

  open_door(&d);
  leave(&d, 15);
  d.gives_way = true;
  tc_listener_keep_free(d.listener, 10);
  run_until_closed(&d, PEERS - 5);
  cr_expect_eq(d.accepted_count, PEERS);
  cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  int fd = dup(0);
  cr_expect_eq((rlim_t)fd, limit.rlim_cur - 10);
  close(fd);
  close_door(&d);
}

Test(listener, who_comes_after_the_shortage_is_taken) {
  struct sockaddr_storage at;
  socklen_t len = sizeof at;
  struct acceptor d;

  open_door(&d);
  leave(&d, 0);
  run_until_closed(&d, PEERS);
  cr_assert_eq(getpeername(d.peers[0], (struct sockaddr *)&at, &len), 0);
  cr_assert_eq(setrlimit(RLIMIT_NOFILE, &d.limit), 0);
  close(d.peers[0]);
  d.peers[0] = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(d.peers[0], (struct sockaddr *)&at, len), 0);
  for (int waited = 0; d.accepted_count == 0 && waited < TT_PATIENCE_MS; waited += 50)
    run_for(&d, 50);
  cr_expect_eq(d.accepted_count, 1);
  close_door(&d);
}

Test(listener, a_socket_that_listens_already_is_taken_over) {
  struct tc_listener_sink sink = { .self = NULL, .ready = ready, .accepted = accepted };
  struct sockaddr_in at = { .sin_family = AF_INET };
  struct tc_listener *listener;
  struct acceptor d = { .turns = 0 };
  socklen_t len = sizeof at;
  struct tb_diag diag;

  sink.self = &d;
  cr_assert_eq(uv_loop_init(&d.uv), 0);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), peer = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
  cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(listen(fd, 8), 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
  cr_assert_eq(connect(peer, (struct sockaddr *)&at, len), 0);
  cr_assert_eq(tc_listener_adopt(&d.uv, fd, "127.0.0.1:1", sink, &diag, &listener), TB_OK);
  cr_expect_str_eq(tc_listener_address(listener), "127.0.0.1:1");
  while (d.accepted_count == 0) uv_run(&d.uv, UV_RUN_ONCE);
  tc_listener_close(listener);
  uv_run(&d.uv, UV_RUN_DEFAULT);
  cr_assert_eq(uv_loop_close(&d.uv), 0);
  close(d.accepted[0]);
  close(peer);
}
