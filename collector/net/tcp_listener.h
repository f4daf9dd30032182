/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket on a loop: accepted descriptors go to the sink.
 *
 * TCP: SO_REUSEADDR, so that a restart takes the same port at once; port 0 takes a free one.
 * A unix socket: mode 0660 and the group of the process from its first moment on, as it gets its name when it is complete.
 *
 * When the
 * process is out of descriptors a spare one lets waiting peers be accepted and closed, so that they
 * hear of it; then nothing is accepted for a moment. Where that cannot be done either the kernel's queue
 * holds them; it is never asked again and again.
 *
 * Threads   all calls on the loop's thread.
 * Errors    open: TB_IO with address and reason in diag; TB_NOMEM.
 */
#ifndef TC_NET_TCP_LISTENER_H
#define TC_NET_TCP_LISTENER_H

#include <uv.h>

#include "base/result.h"

enum { TC_ADDRESS_MAX = 280, TC_PEER_MAX = 63 };

/* Descriptors that each listener leaves to others. Where those of another kind have taken the rest, so few of its own peers
 * come in all the same as long as half of these are left, which are the store's. */
enum { TC_FDS_KEPT_FREE = 128, TC_FEW_PEERS = 16 };

struct tc_listener_sink {
  void *self;
  bool (*ready)(void *self); /* false: accept nothing for a moment; the kernel's queue holds them */
  void (*accepted)(void *self, int fd, const char *peer); /* owns fd, which does not block */
  /* A peer has come that would get one of the last descriptors, so many of them: true: it is taken. May end another one
   * for it, whose descriptor is free at once. NULL: none is taken. */
  bool (*takes_last)(void *self, unsigned left);
};

struct tc_listener;

TB_MUST tb_rc tc_listener_open(uv_loop_t *uv, const char *address, struct tc_listener_sink sink,
                               struct tb_diag *diag, struct tc_listener **out);
/* A unix socket at path. Takes the place of a socket that nobody listens at (a collector that was killed), never that of
 * a file of another kind. Its name goes with close(), unless another socket has taken it. Peers are "uid:N". */
TB_MUST tb_rc tc_listener_open_path(uv_loop_t *uv, const char *path, struct tc_listener_sink sink,
                                    struct tb_diag *diag, struct tc_listener **out);
/* As open, on a socket that listens already and is not blocking: owns it, on failure too. address is what
 * tc_listener_address() will say. */
TB_MUST tb_rc tc_listener_adopt(uv_loop_t *uv, int fd, const char *address,
                                struct tc_listener_sink sink, struct tb_diag *diag,
                                struct tc_listener **out);
/* Peers are turned away, but for those that the sink takes, when fewer descriptors would be left to the process. */
void tc_listener_keep_free(struct tc_listener *listener, unsigned descriptors);
void tc_listener_close(
    struct tc_listener *listener); /* NULL is fine; memory goes with the loop's turn */

/* HOST:PORT with the real port, the host as it was given; or the path. */
const char *tc_listener_address(const struct tc_listener *listener);

#endif
