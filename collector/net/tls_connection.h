/* SPDX-License-Identifier: Apache-2.0 */
/* Socket bytes to clear bytes: one accepted connection on one loop.
 *
 * OpenSSL works on the socket itself under uv_poll: a quarter of the memory of BIO pairs and a fifth
 * less time (bench/README.md of the design). Without a context the bytes are clear already: HTTP on
 * loopback uses the same code.
 *
 * A connection reads at most TC_TLS_TURN_BYTES or TC_TLS_TURN_NS at a time; what OpenSSL still holds
 * then, and what a held sink left over, waits in the loop's queue for its next turn.
 *
 * The end is gentle: the side that ends a connection flushes, sends close_notify, shuts its sending side down
 * and reads on until the peer has ended too or TC_TLS_LINGER_NS passed. Closing at once would
 * make the kernel answer what is still on its way with a reset, which overtakes the alert, REFUSE or
 * ACK just sent.
 *
 * Memory    one read buffer a loop; a connection keeps only what a held sink left (at most one TLS
 *           record) and what the socket did not take.
 * Threads   all calls on the loop's thread.
 * Time      uv_now() of the loop, refreshed after each turn.
 * Errors    the sink's closed() says what happened, once, as the last call.
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
  uv_idle_t again; /* runs while some connection has bytes waiting inside us */
  TAILQ_HEAD(, tc_tls) queue;
  LIST_HEAD(, tc_tls) timed;      /* handshaking or lingering */
  atomic_uint *handshakes;        /* at this moment, of all loops; may be NULL */
  uint64_t handshake_ms;          /* time a peer has */
  unsigned user_timeout_ms;       /* TCP_USER_TIMEOUT; 0: the system's */
  unsigned char buffer[16 << 10]; /* OpenSSL answers at most one record, 16 KiB, at a time */
};

void tc_tls_loop_init(struct tc_tls_loop *loop, uv_loop_t *uv);
void tc_tls_loop_tick(struct tc_tls_loop *loop); /* ends handshakes and lingering past their time */
void tc_tls_loop_close(struct tc_tls_loop *loop); /* no connection may be left */

struct tc_tls_sink {
  void *self;
  void (*open)(void *self); /* handshake done */
  /* Where the next bytes are best put: *out, and how many at most; 0: anywhere. bytes() gets them there, and
   * is the next to be called. NULL: never. */
  size_t (*room)(void *self, unsigned char **out);
  /* Takes *out_used of n. TB_OK takes all; TB_AGAIN: read nothing more until tc_tls_resume(); any
   * other code: the sink is ending this connection itself and wants no more. */
  tb_rc (*bytes)(void *self, const unsigned char *bytes, size_t n, size_t *out_used);
  void (*drained)(void *self); /* what tc_tls_send() kept has gone out */
  /* The peer has sent its end (FIN) while nothing is read, once. NULL: that is noticed when reading goes on. A reset is
   * noticed then only if this is not NULL, and ends the connection. */
  void (*left)(void *self);
  /* The last call: the connection's memory goes after it. why: for people; "" for an orderly end. */
  void (*closed)(void *self, const char *why);
};

/* Owns fd on every path; ctx NULL: clear bytes. TB_NOMEM, TB_IO: closed() is not called. */
TB_MUST tb_rc tc_tls_accept(struct tc_tls_loop *loop, SSL_CTX *ctx, int fd, struct tc_tls_sink sink,
                            struct tc_tls **out);

/* Sends or keeps; a caller that can wait looks at tc_tls_unsent() first. Too little memory ends the
 * connection. */
void tc_tls_send(struct tc_tls *tls, const void *bytes, size_t n);
size_t tc_tls_unsent(const struct tc_tls *tls);

/* What the peer's system has taken, to be compared with an earlier call, and whether more is on the way to it. */
struct tc_tls_flow {
  uint64_t taken;
  bool owes;
};

void tc_tls_flow(const struct tc_tls *tls, struct tc_tls_flow *out);
void tc_tls_resume(struct tc_tls *tls);
bool tc_tls_is_unread(const struct tc_tls *tls); /* bytes of the peer's wait in the socket */

/* No further bytes() or drained(); closed() comes later, with why (NULL or "" : orderly). */
void tc_tls_close(struct tc_tls *tls, const char *why); /* gentle, see above */
void tc_tls_abort(struct tc_tls *tls, const char *why); /* at once */

const SSL *tc_tls_ssl(const struct tc_tls *tls); /* NULL: clear */

#endif
