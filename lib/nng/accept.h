/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what nng's listeners accept, which nng has none for.
 *
 * As with nng/stream.h, functions of the C library are defined here, too: nng calls accept() and close(), and finds ours. (Our own
 * listeners and libuv call accept4().) A peer past a limit is closed at once, before nng takes memory for it. Each
 * listener has its own count, and so has each source (base/source.h) at each listener: of those whose descriptors are open. A libnng that
 * calls accept4() does not come by here: test_accept fails with it.
 *
 * Threads   any; turned_away() is called on nng's.
 */
#ifndef TC_NNG_ACCEPT_H
#define TC_NNG_ACCEPT_H

#include <stdint.h>
#include <sys/socket.h>

enum { TC_NNG_PEER_MAX = 63 };

struct tc_nng_accept_limits {
  unsigned connections_max; /* of one listener */
  unsigned source_max;      /* of one source at one listener */
  unsigned descriptors_kept; /* the process's last descriptors, which no peer gets, */
  unsigned few;              /* but for so many of all listeners, as long as half of them are left */
  void (*turned_away)(void *self, const char *peer, const char *why); /* may be NULL */
  void *self;
};

/* For all listeners of nng in this process, from now on. NULL: no limits. */
void tc_nng_accept_limit(const struct tc_nng_accept_limits *limits);

#endif
