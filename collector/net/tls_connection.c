/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is in one of five states and only moves to the right. A socket without TLS begins OPEN.
 *
 *                 secured          closed by us             all is sent                 the peer's end, or 1 s
 *   HANDSHAKING ──────────> OPEN ───────────────> FLUSHING ─────────────> LINGERING ──────────────────────────> ENDED
 *        └──────────────────┴── broken, or aborted ──┴───────────────────────┴────────────────────────────────────┘
 *
 * A close with nothing left to send skips FLUSHING. */
#include "collector/net/tls_connection.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum state {
  HANDSHAKING,
  OPEN,
  FLUSHING,  /* closed by us: sending the bytes that are kept */
  LINGERING, /* our side is shut down; reading until the peer's is */
  ENDED,     /* the handle is closing */
};

/* Results of a read or write that are not a number of bytes. */
enum { LATER = 0, PEER_ENDED = -1, FAILED = -2 };

struct tc_tls {
  uv_poll_t poll;
  struct tc_tls_loop *loop;
  SSL *ssl; /* NULL: clear */
  int fd;
  enum state state;
  int events;       /* polled for */
  bool held;        /* the sink returned TB_AGAIN */
  bool wants_write; /* OpenSSL has bytes of its own to send */
  bool queued, timed;
  bool has_left; /* sink.left() was called */
  TAILQ_ENTRY(tc_tls) in_queue;
  LIST_ENTRY(tc_tls) in_timed;
  uint64_t deadline_ms;
  struct tc_tls_sink sink;
  unsigned char *left; /* clear bytes that a held sink did not consume */
  size_t left_len;
  unsigned char *out;              /* clear bytes that the socket did not accept */
  size_t out_at, out_len, out_cap; /* the bytes begin at out_at */
  uint64_t written;                /* number of bytes sent, without TLS */
  char why[200];
};

static void on_poll(uv_poll_t *handle, int status, int events);

static void timed_add(struct tc_tls *tls, uint64_t ms) {
  struct tc_tls_loop *loop = tls->loop;

  tls->deadline_ms = uv_now(loop->uv) + ms;
  if (tls->timed) return;
  tls->timed = true;
  LIST_INSERT_HEAD(&loop->timed, tls, in_timed);
}

static void timed_remove(struct tc_tls *tls) {
  if (tls->timed) LIST_REMOVE(tls, in_timed);
  tls->timed = false;
}

static void queue_add(struct tc_tls *tls) {
  if (tls->queued) return;
  tls->queued = true;
  TAILQ_INSERT_TAIL(&tls->loop->queue, tls, in_queue);
}

static void queue_remove(struct tc_tls *tls) {
  if (tls->queued) TAILQ_REMOVE(&tls->loop->queue, tls, in_queue);
  tls->queued = false;
}

/* --- ends -------------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle) {
  struct tc_tls *tls = handle->data;

  SSL_free(tls->ssl);
  ERR_clear_error();
  tls->sink.closed(tls->sink.self, tls->why);
  free(tls->left);
  free(tls->out);
  free(tls);
}

static void leave_handshake(struct tc_tls *tls) {
  timed_remove(tls);
  if (tls->loop->handshakes != NULL) atomic_fetch_sub(tls->loop->handshakes, 1);
}

static void finish(struct tc_tls *tls) {
  if (tls->state == ENDED) return;
  if (tls->state == HANDSHAKING) leave_handshake(tls);
  tls->state = ENDED;
  timed_remove(tls);
  queue_remove(tls);
  uv_close((uv_handle_t *)&tls->poll, on_handle_closed);
  close(tls->fd); /* at once, as others may need a descriptor; libuv no longer uses it */
}

static void note_why(struct tc_tls *tls, const char *why) {
  if (tls->why[0] == '\0' && why != NULL) snprintf(tls->why, sizeof tls->why, "%s", why);
}

static void update_poll(struct tc_tls *tls) {
  int events = 0;

  if (tls->state == ENDED) return;
  if (tls->state == LINGERING || (!tls->held && tls->state != FLUSHING)) events |= UV_READABLE;
  if (tls->state != LINGERING && (tls->out_len > 0 || tls->wants_write)) events |= UV_WRITABLE;
  if (tls->state == OPEN && tls->held && tls->sink.left != NULL && !tls->has_left)
    events |= UV_DISCONNECT;
  if (events == tls->events) return;
  tls->events = events;
  if (events == 0)
    uv_poll_stop(&tls->poll);
  else
    uv_poll_start(&tls->poll, events, on_poll);
}

static void shut_our_side(struct tc_tls *tls) {
  if (tls->state == HANDSHAKING) leave_handshake(tls);
  if (tls->ssl != NULL && SSL_is_init_finished(tls->ssl)) {
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
  }
  shutdown(tls->fd, SHUT_WR);
  tls->state = LINGERING;
  timed_add(tls, TC_TLS_LINGER_MS);
  update_poll(tls);
}

void tc_tls_abort(struct tc_tls *tls, const char *why) {
  note_why(tls, why);
  finish(tls);
}

void tc_tls_close(struct tc_tls *tls, const char *why) {
  if (tls->state > OPEN) return;
  note_why(tls, why);
  queue_remove(tls);
  if (tls->state == OPEN && tls->out_len > 0) {
    tls->state = FLUSHING;
    timed_add(tls, TC_TLS_LINGER_MS);
    update_poll(tls);
    return;
  }
  shut_our_side(tls);
}

static void linger(struct tc_tls *tls) {
  for (int turns = 0; turns < 16; turns++) {
    ssize_t n = recv(tls->fd, tls->loop->buffer, sizeof tls->loop->buffer, MSG_DONTWAIT);

    if (n > 0) continue;
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) finish(tls);
    return;
  }
}

/* --- bytes ------------------------------------------------------------------------------------- */

static int result_of_openssl(struct tc_tls *tls, int answer) {
  char why[sizeof tls->why];

  switch (SSL_get_error(tls->ssl, answer)) {
  case SSL_ERROR_WANT_READ: return LATER;
  case SSL_ERROR_WANT_WRITE: tls->wants_write = true; return LATER;
  case SSL_ERROR_ZERO_RETURN: return PEER_ENDED;
  default:
    tc_tls_why(tls->ssl, why, sizeof why);
    note_why(tls, why);
    return FAILED;
  }
}

static int result_of_errno(struct tc_tls *tls) {
  if (errno == EAGAIN || errno == EINTR) return LATER;
  note_why(tls, strerror(errno));
  return FAILED;
}

static int read_some(struct tc_tls *tls, unsigned char *into, size_t room) {
  if (tls->ssl != NULL) {
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(tls->ssl, into, room < INT32_MAX ? (int)room : INT32_MAX);
    return n > 0 ? n : result_of_openssl(tls, n);
  }
  ssize_t n = recv(tls->fd, into, room, MSG_DONTWAIT);
  if (n > 0) return (int)n;
  return n == 0 ? PEER_ENDED : result_of_errno(tls);
}

static int write_some(struct tc_tls *tls, const unsigned char *bytes, size_t n) {
  int want = n > INT32_MAX ? INT32_MAX : (int)n;

  if (tls->ssl != NULL) {
    ERR_clear_error();
    errno = 0;
    int sent = SSL_write(tls->ssl, bytes, want);
    return sent > 0 ? sent : result_of_openssl(tls, sent);
  }
  ssize_t sent = send(tls->fd, bytes, (size_t)want, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) tls->written += (uint64_t)sent;
  return sent >= 0 ? (int)sent : result_of_errno(tls);
}

/* Delivers bytes to the sink, and keeps the ones that it does not consume until it is resumed. */
static void deliver(struct tc_tls *tls, const unsigned char *bytes, size_t n) {
  size_t used = n;
  tb_rc rc = tls->sink.bytes(tls->sink.self, bytes, n, &used);

  if (tls->state != OPEN || rc != TB_AGAIN) return;
  tls->held = true;
  if (used == n) return;
  tls->left = malloc(n - used);
  if (tls->left == NULL) {
    tc_tls_abort(tls, "out of memory");
    return;
  }
  memcpy(tls->left, bytes + used, n - used);
  tls->left_len = n - used;
}

static void deliver_left(struct tc_tls *tls) {
  unsigned char *bytes = TB_MOVE(tls->left);
  size_t n = tls->left_len;

  tls->left_len = 0;
  if (bytes != NULL) deliver(tls, bytes, n);
  free(bytes);
}

static void read_turn(struct tc_tls *tls) {
  uint64_t end_ns = uv_hrtime() + TC_TLS_TURN_NS;
  size_t taken = 0;

  deliver_left(tls);
  while (tls->state == OPEN && !tls->held) {
    unsigned char *into = NULL;
    size_t room = tls->sink.room != NULL ? tls->sink.room(tls->sink.self, &into) : 0;
    if (room == 0) into = tls->loop->buffer;
    if (room == 0 || room > sizeof tls->loop->buffer) room = sizeof tls->loop->buffer;
    int n = read_some(tls, into, room);

    if (n == LATER) break;
    if (n == PEER_ENDED) {
      tc_tls_close(tls, NULL);
      return;
    }
    if (n == FAILED) {
      finish(tls);
      return;
    }
    deliver(tls, into, (size_t)n);
    taken += (size_t)n;
    if (taken < TC_TLS_TURN_BYTES && uv_hrtime() < end_ns) continue;
    /* Queue a turn: polling reports bytes in the socket, but not those that OpenSSL has read ahead. */
    if (!tls->held) tc_tls_resume(tls);
    break;
  }
  update_poll(tls);
}

static void flush(struct tc_tls *tls) {
  bool owed = tls->out_len > 0;

  tls->wants_write = false;
  while (tls->out_len > 0) {
    int n = write_some(tls, tls->out + tls->out_at, tls->out_len);

    if (n == LATER) break;
    if (n < 0) {
      finish(tls);
      return;
    }
    tls->out_at += (size_t)n;
    tls->out_len -= (size_t)n;
  }
  if (owed && tls->out_len == 0) {
    free(tls->out);
    tls->out = NULL;
    tls->out_at = tls->out_cap = 0;
    if (tls->state == FLUSHING) {
      shut_our_side(tls);
      return;
    }
    tls->sink.drained(tls->sink.self);
  }
  update_poll(tls);
}

/* Appends bytes to `out`. Moves the kept bytes to the front only if at least as many were sent. */
static bool keep_unsent(struct tc_tls *tls, const unsigned char *bytes, size_t n) {
  if (n > tls->out_cap - tls->out_at - tls->out_len && tls->out_at >= tls->out_len + n) {
    memmove(tls->out, tls->out + tls->out_at, tls->out_len);
    tls->out_at = 0;
  } else if (n > tls->out_cap - tls->out_at - tls->out_len) {
    size_t cap = tls->out_at + (tls->out_len + n) * 2;
    unsigned char *out = realloc(tls->out, cap);

    if (out == NULL) return false;
    tls->out = out;
    tls->out_cap = cap;
  }
  memcpy(tls->out + tls->out_at + tls->out_len, bytes, n);
  tls->out_len += n;
  return true;
}

void tc_tls_send(struct tc_tls *tls, const void *data, size_t n) {
  const unsigned char *bytes = data;

  if (tls->state != OPEN) return;
  while (n > 0 && tls->out_len == 0) {
    int sent = write_some(tls, bytes, n);

    if (sent == LATER) break;
    if (sent < 0) {
      finish(tls);
      return;
    }
    bytes += sent;
    n -= (size_t)sent;
  }
  if (n > 0 && !keep_unsent(tls, bytes, n)) {
    tc_tls_abort(tls, "out of memory");
    return;
  }
  update_poll(tls);
}

size_t tc_tls_unsent(const struct tc_tls *tls) {
  return tls->out_len;
}

void tc_tls_flow(const struct tc_tls *tls, struct tc_tls_flow *out) {
  uint64_t written = tls->ssl != NULL ? BIO_number_written(SSL_get_wbio(tls->ssl)) : tls->written;
  int queued = 0;

  *out = (struct tc_tls_flow){ 0 };
  if (tls->state == ENDED) return;
  (void)ioctl(tls->fd, SIOCOUTQ, &queued);
  *out = (struct tc_tls_flow){ written - (uint64_t)queued, tls->out_len > 0 || queued > 0 };
}

bool tc_tls_is_unread(const struct tc_tls *tls) {
  int waiting = 0;

  return tls->state <= OPEN && ioctl(tls->fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

const SSL *tc_tls_ssl(const struct tc_tls *tls) {
  return tls->ssl;
}

/* --- events ------------------------------------------------------------------------------------ */

static void handshake(struct tc_tls *tls) {
  ERR_clear_error();
  errno = 0;
  tls->wants_write = false;
  int answer = SSL_accept(tls->ssl);

  if (answer == 1) {
    leave_handshake(tls);
    tls->state = OPEN;
    tls->sink.open(tls->sink.self);
    /* The peer's first bytes may have arrived with its last handshake message. */
    if (tls->state == OPEN) read_turn(tls);
    return;
  }
  if (result_of_openssl(tls, answer) == LATER)
    update_poll(tls);
  else
    shut_our_side(tls); /* linger, so that the alert arrives */
}

/* libuv reports EBADF for any EPOLLERR, so ask the socket. While lingering, a reset is an orderly end. */
static void socket_broke(struct tc_tls *tls) {
  int why = 0;
  socklen_t len = sizeof why;

  (void)getsockopt(tls->fd, SOL_SOCKET, SO_ERROR, &why, &len);
  tc_tls_abort(tls, tls->state <= OPEN ? strerror(why != 0 ? why : ECONNRESET) : NULL);
}

static void report_left(struct tc_tls *tls) {
  tls->has_left = true;
  tls->sink.left(tls->sink.self);
  update_poll(tls);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
  struct tc_tls *tls = handle->data;

  if (status < 0) {
    socket_broke(tls);
    return;
  }
  switch (tls->state) {
  case HANDSHAKING: handshake(tls); break;
  case OPEN:
    if (events & UV_WRITABLE) flush(tls);
    if (tls->state == OPEN && (events & UV_READABLE) && !tls->held) read_turn(tls);
    if (tls->state == OPEN && (events & UV_DISCONNECT) && tls->held) report_left(tls);
    break;
  case FLUSHING: flush(tls); break;
  case LINGERING: linger(tls); break;
  case ENDED: break;
  }
}

/* Gives a turn to each connection that is queued when the round begins; those queued meanwhile wait for the next round. */
static void on_again(uv_idle_t *handle) {
  struct tc_tls_loop *loop = handle->data;
  size_t waiting = 0;

  for (struct tc_tls *tls = TAILQ_FIRST(&loop->queue); tls != NULL; tls = TAILQ_NEXT(tls, in_queue))
    waiting++;
  for (; waiting > 0 && !TAILQ_EMPTY(&loop->queue); waiting--) {
    struct tc_tls *tls = TAILQ_FIRST(&loop->queue);

    queue_remove(tls);
    read_turn(tls);
  }
  if (TAILQ_EMPTY(&loop->queue)) uv_idle_stop(&loop->again);
}

void tc_tls_resume(struct tc_tls *tls) {
  if (tls->state != OPEN) return;
  tls->held = false;
  queue_add(tls);
  uv_idle_start(&tls->loop->again, on_again);
}

tb_rc tc_tls_accept(struct tc_tls_loop *loop, SSL_CTX *ctx, int fd, struct tc_tls_sink sink,
                    struct tc_tls **out) {
  struct tc_tls *tls = calloc(1, sizeof *tls);
  int on = 1;

  if (tls == NULL) goto no_memory;
  if (ctx != NULL && ((tls->ssl = SSL_new(ctx)) == NULL || SSL_set_fd(tls->ssl, fd) != 1))
    goto no_memory;
  tls->loop = loop;
  tls->fd = fd;
  tls->sink = sink;
  tls->state = ctx != NULL ? HANDSHAKING : OPEN;
  tls->poll.data = tls;
  /* Ignore errors: on a socket that is not TCP (a unix socket) these options do not exist. */
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (loop->user_timeout_ms != 0)
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &loop->user_timeout_ms,
                     sizeof loop->user_timeout_ms);
  if (uv_poll_init_socket(loop->uv, &tls->poll, fd) != 0) {
    SSL_free(tls->ssl);
    free(tls);
    close(fd);
    return TB_IO;
  }
  if (ctx != NULL) {
    if (loop->handshakes != NULL) atomic_fetch_add(loop->handshakes, 1);
    timed_add(tls, loop->handshake_ms);
  }
  update_poll(tls);
  *out = tls;
  return TB_OK;

no_memory:
  if (tls != NULL) SSL_free(tls->ssl);
  ERR_clear_error();
  free(tls);
  close(fd);
  return TB_NOMEM;
}

void tc_tls_loop_init(struct tc_tls_loop *loop, uv_loop_t *uv) {
  memset(loop, 0, sizeof *loop);
  loop->uv = uv;
  TAILQ_INIT(&loop->queue);
  LIST_INIT(&loop->timed);
  loop->handshake_ms = 5000;
  uv_idle_init(uv, &loop->again);
  loop->again.data = loop;
}

void tc_tls_loop_tick(struct tc_tls_loop *loop) {
  uint64_t now_ms = uv_now(loop->uv);
  struct tc_tls *next;

  for (struct tc_tls *tls = LIST_FIRST(&loop->timed); tls != NULL; tls = next) {
    next = LIST_NEXT(tls, in_timed);
    if (now_ms < tls->deadline_ms) continue;
    if (tls->state == HANDSHAKING) note_why(tls, "handshake took too long");
    finish(tls);
  }
}

void tc_tls_loop_close(struct tc_tls_loop *loop) {
  uv_close((uv_handle_t *)&loop->again, NULL);
}
