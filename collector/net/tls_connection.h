/* SPDX-License-Identifier: Apache-2.0 */
/* Turns socket bytes into clear bytes: one accepted connection on one loop.
 *
 * OpenSSL works directly on the socket under uv_poll: a quarter of the memory of BIO pairs and a fifth less time. Without a
 * context the bytes are clear already: HTTP on loopback uses the same code.
 *
 * A connection reads at most TC_TLS_TURN_BYTES or TC_TLS_TURN_NS at a time. If OpenSSL has more bytes, or a held sink left
 * some, the connection waits in the loop's queue for its next turn.
 *
 * A gentle close flushes, sends close_notify, shuts down the sending side, and reads on until the peer has closed, too, or
 * TC_TLS_LINGER_MS passed. Closing at once would make the kernel answer bytes in flight with a reset, which overtakes the
 * alert, REFUSE or ACK just sent.
 *
 * Memory    one read buffer a loop; a connection keeps only bytes that a held sink left (at most one TLS record) and
 *           bytes that the socket did not accept.
 * Threads   all calls on the loop's thread.
 * Time      uv_now() of the loop, refreshed after each turn.
 * Errors    the sink's closed() gets the reason, once, as the last call.
 */
#ifndef TC_NET_TLS_CONNECTION_H
#define TC_NET_TLS_CONNECTION_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "collector/net/tls_context.h"

enum { TC_TLS_TURN_BYTES = 64 << 10, TC_TLS_TURN_NS = 1000000, TC_TLS_LINGER_MS = 1000 };

struct tc_tls;

/* Shared by the connections of one loop. */
struct tc_tls_loop {
  uv_loop_t *uv;
  uv_idle_t again; /* runs while the queue is not empty */
  TAILQ_HEAD(, tc_tls) queue;
  LIST_HEAD(, tc_tls) timed;      /* handshaking or lingering */
  atomic_uint *handshakes;        /* current number, of all loops; may be NULL */
  uint64_t handshake_ms;          /* a handshake's timeout */
  unsigned user_timeout_ms;       /* TCP_USER_TIMEOUT; 0: the system's */
  unsigned char buffer[16 << 10]; /* OpenSSL returns at most one record, 16 KiB, at a time */
};

void tc_tls_loop_init(struct tc_tls_loop *loop, uv_loop_t *uv);
void tc_tls_loop_tick(struct tc_tls_loop *loop); /* ends handshakes and lingering past their time */
void tc_tls_loop_close(struct tc_tls_loop *loop); /* no connection may be left */

struct tc_tls_sink {
  void *self;
  void (*open)(void *self); /* handshake done */
  /* Offers a buffer for the next bytes: sets *out and returns its size; 0: use any buffer. The next call is then bytes() with
   * that buffer. May be NULL. */
  size_t (*room)(void *self, unsigned char **out);
  /* Consumes *out_used of n bytes. TB_OK: all were consumed; TB_AGAIN: read nothing more until tc_tls_resume(); any other
   * code: the sink ends this connection itself, and gets no further bytes. */
  tb_rc (*bytes)(void *self, const unsigned char *bytes, size_t n, size_t *out_used);
  void (*drained)(void *self); /* all bytes that tc_tls_send() kept are sent */
  /* Called once if the peer sends a FIN while reading is paused. If NULL, neither a FIN nor a reset is noticed before reading
   * continues; otherwise a reset ends the connection. */
  void (*left)(void *self);
  /* The last call; the connection is freed after it. why: for people; "" for an orderly end. */
  void (*closed)(void *self, const char *why);
};

/* Takes ownership of fd on every path; ctx NULL: clear bytes. After an error (TB_NOMEM, TB_IO) closed() is not called. */
TB_MUST tb_rc tc_tls_accept(struct tc_tls_loop *loop, SSL_CTX *ctx, int fd, struct tc_tls_sink sink,
                            struct tc_tls **out);

/* Sends the bytes, or keeps them until they can be sent: a caller that can wait checks tc_tls_unsent() first. If memory cannot
 * be allocated the connection ends. */
void tc_tls_send(struct tc_tls *tls, const void *bytes, size_t n);
size_t tc_tls_unsent(const struct tc_tls *tls);

struct tc_tls_flow {
  uint64_t taken; /* bytes that the peer's system has acknowledged; compare with an earlier call */
  bool owes;      /* more bytes are on the way */
};

void tc_tls_flow(const struct tc_tls *tls, struct tc_tls_flow *out);
void tc_tls_resume(struct tc_tls *tls);
bool tc_tls_is_unread(const struct tc_tls *tls); /* bytes from the peer wait in the socket */

/* Close a connection: no further bytes() or drained(); closed() is called later, with why (NULL or "": orderly). */
void tc_tls_close(struct tc_tls *tls, const char *why); /* gently, see above */
void tc_tls_abort(struct tc_tls *tls, const char *why); /* at once */

const SSL *tc_tls_ssl(const struct tc_tls *tls); /* NULL: clear */

#endif
