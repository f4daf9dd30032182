/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/net/tcp_listener.h"
#include "support/patience.h"

enum { PEERS = 40, LOOK_MS = 350 };

struct acceptor {
  uv_loop_t uv;
  uv_prepare_t turn;
  uv_timer_t timer;
  struct tc_listener *listener;
  struct rlimit limit; /* the earlier limit */
  unsigned turns, accepted_count;
  bool gives_way; /* the oldest connection, for a new one */
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

/* Lowers the limit so that exactly n more descriptors can be opened. */
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

/* If the machine stood still, the loop runs a due timer before it checks its sockets. So this function runs the loop
 * repeatedly, and returns how often. */
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
  /* each connection is accepted with the spare descriptor */
  unsigned runs = run_until_closed(&d, PEERS);
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

/* --- unix sockets ------------------------------------------------------------------------------ */

struct named {
  uv_loop_t uv;
  struct tc_listener *listener;
  char folder[32], path[64], peer[TC_PEER_MAX + 1];
  struct tb_diag diag;
};

static void took(void *self, int fd, const char *peer) {
  struct named *n = self;

  snprintf(n->peer, sizeof n->peer, "%s", peer);
  close(fd);
}

static tb_rc open_at(struct named *n, const char *path) {
  struct tc_listener_sink sink = { .self = n, .ready = ready, .accepted = took };

  tb_diag_clear(&n->diag);
  return tc_listener_open_path(&n->uv, path, sink, &n->diag, &n->listener);
}

static void begin_named(struct named *n) {
  *n = (struct named){ .folder = "/tmp/tc_sock_XXXXXX" };
  cr_assert_eq(uv_loop_init(&n->uv), 0);
  cr_assert_not_null(mkdtemp(n->folder));
  snprintf(n->path, sizeof n->path, "%s/http.sock", n->folder);
}

static void close_named(struct named *n) {
  tc_listener_close(TB_MOVE(n->listener));
  uv_run(&n->uv, UV_RUN_DEFAULT);
}

/* Expects no file to be left beside the socket, so that the folder can be removed. */
static void end_named(struct named *n) {
  close_named(n);
  cr_expect_eq(rmdir(n->folder), 0, "%s", strerror(errno));
  cr_assert_eq(uv_loop_close(&n->uv), 0);
}

static int dial_path(const char *path) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);

  strcpy(at.sun_path, path);
  if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
  close(fd);
  return -1;
}

static ino_t file_at(const char *path, mode_t *mode) {
  struct stat file;

  if (lstat(path, &file) != 0) return 0;
  *mode = file.st_mode;
  return file.st_ino;
}

Test(listener, a_unix_socket_is_the_groups_and_its_peers_are_users) {
  struct named n;
  mode_t mode, masked = umask(0077);
  char me[32];

  begin_named(&n);
  cr_assert_eq(open_at(&n, n.path), TB_OK, "%s", n.diag.text);
  cr_expect_str_eq(tc_listener_address(n.listener), n.path);
  cr_assert_neq(file_at(n.path, &mode), 0);
  cr_expect_eq(mode, S_IFSOCK | 0660, "%o", mode);
  int fd = dial_path(n.path);
  cr_assert_geq(fd, 0);
  while (n.peer[0] == '\0') uv_run(&n.uv, UV_RUN_ONCE);
  snprintf(me, sizeof me, "uid:%u", (unsigned)getuid());
  cr_expect_str_eq(n.peer, me);
  close(fd);
  end_named(&n);
  umask(masked);
}

Test(listener, a_socket_that_nobody_listens_at_is_replaced) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  struct named n;

  begin_named(&n);
  strcpy(at.sun_path, n.path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(listen(fd, 1), 0);
  close(fd); /* the socket's name stays, as after a kill -9 */
  cr_assert_eq(open_at(&n, n.path), TB_OK, "%s", n.diag.text);
  fd = dial_path(n.path);
  cr_expect_geq(fd, 0);
  close(fd);
  end_named(&n);
}

Test(listener, a_socket_that_is_in_use_stays) {
  struct named n, second;
  mode_t mode;

  begin_named(&n);
  cr_assert_eq(open_at(&n, n.path), TB_OK, "%s", n.diag.text);
  ino_t first = file_at(n.path, &mode);
  begin_named(&second);
  cr_expect_eq(open_at(&second, n.path), TB_IO);
  cr_expect(strstr(second.diag.text, "another program listens there") != NULL, "%s",
            second.diag.text);
  cr_expect_eq(file_at(n.path, &mode), first);
  end_named(&second);
  end_named(&n);
}

Test(listener, a_file_of_another_kind_stays) {
  struct named n;
  char target[64];
  mode_t mode;

  begin_named(&n);
  snprintf(target, sizeof target, "%s/target", n.folder);
  close(open(n.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  cr_expect_eq(open_at(&n, n.path), TB_IO);
  cr_expect(strstr(n.diag.text, "not a socket") != NULL, "%s", n.diag.text);
  cr_expect(file_at(n.path, &mode) != 0 && S_ISREG(mode));
  unlink(n.path);
  cr_assert_eq(symlink(target, n.path), 0);
  cr_expect_eq(open_at(&n, n.path), TB_IO);
  cr_expect(file_at(n.path, &mode) != 0 && S_ISLNK(mode));
  unlink(n.path);
  end_named(&n);
}

Test(listener, what_another_one_put_in_its_place_is_not_removed) {
  struct named n, second;
  mode_t mode;

  begin_named(&n);
  cr_assert_eq(open_at(&n, n.path), TB_OK, "%s", n.diag.text);
  unlink(n.path);
  begin_named(&second);
  cr_assert_eq(open_at(&second, n.path), TB_OK, "%s", second.diag.text);
  close_named(&n);
  cr_expect_neq(file_at(n.path, &mode), 0);
  end_named(&second);
  end_named(&n);
}

Test(listener, a_path_that_no_socket_can_have_is_refused) {
  char longest[200];
  struct named n;

  begin_named(&n);
  snprintf(longest, sizeof longest, "%s/%0110d", n.folder, 0);
  cr_expect_eq(open_at(&n, longest), TB_IO);
  cr_expect(strstr(n.diag.text, "too long") != NULL, "%s", n.diag.text);
  snprintf(longest, sizeof longest, "%s/none/http.sock", n.folder);
  cr_expect_eq(open_at(&n, longest), TB_IO);
  cr_expect(strstr(n.diag.text, "No such file") != NULL, "%s", n.diag.text);
  end_named(&n);
}
