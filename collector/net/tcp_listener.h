/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket on a loop; the sink gets accepted descriptors.
 *
 * TCP: SO_REUSEADDR, so that a restart can take the same port at once; port 0 takes a free one.
 * A unix socket has mode 0660 and the group of the process from the first moment: it is renamed to its path when complete.
 *
 * When the process is out of descriptors, a spare one is used to accept and close waiting peers, so that they notice;
 * then the listener pauses. If even that fails the peers stay in the kernel's queue during the pause.
 *
 * Threads   all calls on the loop's thread.
 * Errors    open: TB_IO with address and reason in diag; TB_NOMEM.
 */
#ifndef TC_NET_TCP_LISTENER_H
#define TC_NET_TCP_LISTENER_H

#include <uv.h>

#include "base/result.h"

enum { TC_ADDRESS_MAX = 280, TC_PEER_MAX = 63 };

/* TC_FDS_KEPT_FREE: descriptors that each listener leaves to others; half of them are the store's. TC_FEW_PEERS: a listener
 * with fewer peers than this may use the other half, if other kinds of peers have taken the rest. */
enum { TC_FDS_KEPT_FREE = 128, TC_FEW_PEERS = 16 };

struct tc_listener_sink {
  void *self;
  bool (*ready)(void *self); /* false: pause; peers stay in the kernel's queue */
  void (*accepted)(void *self, int fd, const char *peer); /* owns fd, which does not block */
  /* Decides on a peer that gets one of the last `left` descriptors. Returns true to accept it, possibly after closing the
   * descriptor of another one. NULL: such peers are turned away. */
  bool (*takes_last)(void *self, unsigned left);
};

struct tc_listener;

TB_MUST tb_rc tc_listener_open(uv_loop_t *uv, const char *address, struct tc_listener_sink sink,
                               struct tb_diag *diag, struct tc_listener **out);
/* Opens a unix socket at path. Replaces a socket that nobody listens on (left by a killed collector), but no other kind of
 * file. close() removes the name unless another socket has taken it. Peers are named "uid:N". */
TB_MUST tb_rc tc_listener_open_path(uv_loop_t *uv, const char *path, struct tc_listener_sink sink,
                                    struct tb_diag *diag, struct tc_listener **out);
/* Uses a non-blocking socket that listens already, and owns it, also after an error. address: the result of
 * tc_listener_address(). */
TB_MUST tb_rc tc_listener_adopt(uv_loop_t *uv, int fd, const char *address,
                                struct tc_listener_sink sink, struct tb_diag *diag,
                                struct tc_listener **out);
/* Keeps this many descriptors of the process free: turns peers away, except those that sink.takes_last() accepts. */
void tc_listener_keep_free(struct tc_listener *listener, unsigned descriptors);
void tc_listener_close(struct tc_listener *listener); /* NULL is fine; freed by the loop later */

/* Returns HOST:PORT with the actual port and the host as it was given, or the path. */
const char *tc_listener_address(const struct tc_listener *listener);

#endif
