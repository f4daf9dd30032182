/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes that are closed between two parts of a message. The test creates that moment: all
 * threads of nng that run callbacks are held while a part ends and the pipe is closed. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <nng/nng.h>

#include <nng/protocol/pubsub0/pub.h>
#include <nng/supplemental/tls/tls.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "nng/close.h"
#include "nng/stream.h"
#include "nng/tls_engine.h"
#include "tests/support/certs.h"
#include "tests/support/patience.h"

enum { TASKS_MAX = 256, GREETING_BYTES = 8, BIG_BYTES = 4 << 20 };
static const char greeting_of_sub[GREETING_BYTES] = { 0, 'S', 'P', 0, 0, 33, 0, 0 };

static char folder[64];

static void make_folder(void) {
  strcpy(folder, "/tmp/tc_stream_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  tt_certs_make(folder);
  tc_nng_streams_init();
}

static void remove_folder(void) {
  char command[128];

  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(stream, .init = make_folder, .fini = remove_folder);

/* --- holding nng's callbacks -------------------------------------------------------------------- */

static nng_aio *holders[TASKS_MAX];
static unsigned tasks;
static atomic_uint held;
static sem_t go_on;

static void hold(void *self) {
  (void)self;
  held++;
  sem_wait(&go_on);
}

static unsigned count_tasks(void) {
  DIR *threads = opendir("/proc/self/task");
  const struct dirent *entry;
  unsigned count = 0;

  while ((entry = readdir(threads)) != NULL) {
    char path[300], name[32] = "";

    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strcmp(name, "nng:task\n") == 0) count++;
    fclose(file);
  }
  closedir(threads);
  return count;
}

static void hold_tasks(void) {
  tasks = count_tasks();
  cr_assert_gt(tasks, 0);
  cr_assert_leq(tasks, TASKS_MAX);
  sem_init(&go_on, 0, 0);
  held = 0;
  for (unsigned i = 0; i < tasks; i++) {
    cr_assert_eq(nng_aio_alloc(&holders[i], hold, NULL), 0);
    nng_aio_finish(holders[i], 0);
  }
  TT_WAIT_UNTIL(held == tasks);
}

static void release_tasks(void) {
  for (unsigned i = 0; i < tasks; i++) sem_post(&go_on);
  for (unsigned i = 0; i < tasks; i++) nng_aio_free(holders[i]);
}

/* --- what nng sends ------------------------------------------------------------------------------ */

static atomic_uint parts, full;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);

  if (sent > 0) parts++;
  if (sent < 0 && errno == EAGAIN) full++;
  return sent;
}

/* --- a publisher and its subscribers ------------------------------------------------------------- */

struct publisher {
  nng_socket socket;
  nng_listener listener;
  struct tc_nng_tls *tls;
  nng_pipe newest;
  atomic_uint came, gone;
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  struct publisher *p = self;

  if (event == NNG_PIPE_EV_ADD_POST) {
    p->newest = pipe;
    p->came++;
  } else {
    p->gone++;
  }
}

static void publisher_open(struct publisher *p, const char *url) {
  *p = (struct publisher){ 0 };
  cr_assert_eq(nng_pub0_open(&p->socket), 0);
  cr_assert_eq(nng_pipe_notify(p->socket, NNG_PIPE_EV_ADD_POST, on_pipe, p), 0);
  cr_assert_eq(nng_pipe_notify(p->socket, NNG_PIPE_EV_REM_POST, on_pipe, p), 0);
  cr_assert_eq(nng_listener_create(&p->listener, p->socket, url), 0);
}

static void publish(struct publisher *p, size_t bytes) {
  nng_msg *message;

  cr_assert_eq(nng_msg_alloc(&message, bytes), 0);
  cr_assert_eq(nng_sendmsg(p->socket, message, 0), 0);
}

static void publisher_close(struct publisher *p) {
  cr_assert(tc_nng_close(p->socket));
  tc_nng_tls_free(p->tls);
}

static void read_whole(int fd, void *into, size_t n) {
  for (size_t got = 0; got < n;) {
    ssize_t more = read(fd, (char *)into + got, n - got);
    cr_assert_gt(more, 0);
    got += (size_t)more;
  }
}

static int subscribe_here(struct publisher *p, const char *path) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unsigned before = p->came;
  char greeting[GREETING_BYTES];

  snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(write(fd, greeting_of_sub, sizeof greeting_of_sub), GREETING_BYTES);
  read_whole(fd, greeting, sizeof greeting);
  TT_WAIT_UNTIL(p->came > before);
  return fd;
}

static void read_until_the_next_part(int fd) {
  static char bytes[1 << 16];
  unsigned before = parts;

  for (int ms = 0; parts == before && ms < TT_PATIENCE_MS;)
    if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) {
      usleep(1000);
      ms++;
    }
  cr_assert_gt(parts, before);
}

Test(stream, a_pipe_closed_inside_a_message_holds_up_no_other) {
  struct publisher p;
  char url[96], path[80];

  snprintf(path, sizeof path, "%s/feed.sock", folder);
  snprintf(url, sizeof url, "ipc://%s", path);
  publisher_open(&p, url);
  cr_assert_eq(nng_listener_start(p.listener, 0), 0);
  int first = subscribe_here(&p, path);
  full = 0;
  publish(&p, BIG_BYTES);
  TT_WAIT_UNTIL(full > 0);
  hold_tasks();
  read_until_the_next_part(first);
  nng_pipe_close(p.newest);
  release_tasks();
  int second = subscribe_here(&p, path);
  close(second);
  TT_WAIT_UNTIL(p.gone == 2);
  close(first);
  publisher_close(&p);
}

/* --- the same over TLS --------------------------------------------------------------------------- */

static SSL_CTX *context(const SSL_METHOD *method, const char *name) {
  SSL_CTX *ctx = SSL_CTX_new(method);
  char path[128];

  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  snprintf(path, sizeof path, "%s/ca.pem", folder);
  cr_assert_eq(SSL_CTX_load_verify_file(ctx, path), 1);
  snprintf(path, sizeof path, "%s/%s.pem", folder, name);
  cr_assert_eq(SSL_CTX_use_certificate_chain_file(ctx, path), 1);
  snprintf(path, sizeof path, "%s/%s.key", folder, name);
  cr_assert_eq(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM), 1);
  return ctx;
}

static void listen_over_tls(struct publisher *p) {
  struct tc_nng_terms terms = { .ctx = context(TLS_server_method(), "server"),
                                .server = true,
                                .peer_act = TC_ACT_FEED };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_nng_tls_new(&terms, &diag, &p->tls), TB_OK, "%s", diag.text);
  SSL_CTX_free(terms.ctx);
  cr_assert_eq(nng_listener_set_ptr(p->listener, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(p->tls)), 0);
  cr_assert_eq(nng_listener_start(p->listener, 0), 0);
}

static SSL *subscribe_over_tls(struct publisher *p) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  SSL_CTX *ctx = context(TLS_client_method(), "reader");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;
  unsigned before = p->came;
  char greeting[GREETING_BYTES];

  cr_assert_eq(nng_listener_get_int(p->listener, NNG_OPT_TCP_BOUND_PORT, &port), 0);
  at.sin_port = htons((uint16_t)port);
  cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  SSL *ssl = SSL_new(ctx);
  SSL_CTX_free(ctx);
  SSL_set_fd(ssl, fd);
  cr_assert_eq(SSL_connect(ssl), 1);
  cr_assert_eq(SSL_write(ssl, greeting_of_sub, sizeof greeting_of_sub), GREETING_BYTES);
  cr_assert_eq(SSL_read(ssl, greeting, sizeof greeting), GREETING_BYTES);
  TT_WAIT_UNTIL(p->came > before);
  return ssl;
}

static void leave(SSL *ssl) {
  close(SSL_get_fd(ssl));
  SSL_free(ssl);
}

Test(stream, a_pipe_over_tls_closed_inside_a_message_holds_up_no_other) {
  struct publisher p;

  publisher_open(&p, "tls+tcp://127.0.0.1:0");
  listen_over_tls(&p);
  SSL *first = subscribe_over_tls(&p);
  hold_tasks();
  publish(&p, 100); /* the length is sent at once, the rest by a callback */
  nng_pipe_close(p.newest);
  release_tasks();
  SSL *second = subscribe_over_tls(&p);
  leave(second);
  TT_WAIT_UNTIL(p.gone == 2);
  leave(first);
  publisher_close(&p);
}

/* --- one operation ------------------------------------------------------------------------------- */

struct ending {
  nng_aio *aio;
  atomic_uint count;
  atomic_int result;
};

static void note_end(void *self) {
  struct ending *e = self;

  e->result = nng_aio_result(e->aio);
  e->count++;
}

static void open_stream(nng_stream_listener **listener, nng_stream **out) {
  char url[96];
  nng_stream_dialer *dialer;
  nng_aio *aio;

  snprintf(url, sizeof url, "ipc://%s/one.sock", folder);
  cr_assert_eq(nng_aio_alloc(&aio, NULL, NULL), 0);
  cr_assert_eq(nng_stream_listener_alloc(listener, url), 0);
  cr_assert_eq(nng_stream_listener_listen(*listener), 0);
  cr_assert_eq(nng_stream_dialer_alloc(&dialer, url), 0);
  nng_stream_dialer_dial(dialer, aio);
  nng_aio_wait(aio);
  cr_assert_eq(nng_aio_result(aio), 0);
  *out = nng_aio_get_output(aio, 0);
  nng_stream_dialer_free(dialer);
  nng_aio_free(aio);
}

Test(stream, what_nng_refuses_ends_once) {
  nng_iov iov = { .iov_buf = (char[1]){ 0 }, .iov_len = 1 };
  nng_stream_listener *listener;
  struct ending end = { 0 };
  nng_stream *stream;

  open_stream(&listener, &stream);
  cr_assert_eq(nng_aio_alloc(&end.aio, note_end, &end), 0);
  cr_assert_eq(nng_aio_set_iov(end.aio, 1, &iov), 0);
  nng_aio_stop(end.aio);
  nng_stream_send(stream, end.aio);
  TT_WAIT_UNTIL(end.count == 1);
  cr_assert_eq(end.result, NNG_ECONNRESET);
  nng_stream_recv(stream, end.aio);
  TT_WAIT_UNTIL(end.count == 2);
  cr_assert_eq(end.result, NNG_ECONNRESET);
  nng_aio_free(end.aio);
  cr_assert_eq(end.count, 2);
  nng_stream_free(stream);
  nng_stream_listener_free(listener);
}

Test(stream, what_is_cancelled_later_ends_once) {
  nng_iov iov = { .iov_buf = (char[1]){ 0 }, .iov_len = 1 };
  nng_stream_listener *listener;
  struct ending end = { 0 };
  nng_stream *stream;

  open_stream(&listener, &stream);
  cr_assert_eq(nng_aio_alloc(&end.aio, note_end, &end), 0);
  cr_assert_eq(nng_aio_set_iov(end.aio, 1, &iov), 0);
  nng_stream_recv(stream, end.aio);
  nng_aio_stop(end.aio);
  cr_assert_eq(end.count, 1);
  cr_assert_eq(end.result, NNG_ECANCELED);
  nng_aio_free(end.aio);
  cr_assert_eq(end.count, 1);
  nng_stream_free(stream);
  nng_stream_listener_free(listener);
}
