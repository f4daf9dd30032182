/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the connections of nng's listeners, because nng has no limits.
 *
 * Like nng/stream.h, this replaces functions of the C library: nng's calls of accept() and close() come here. (This program's
 * own listeners and libuv call accept4().) A peer above a limit is closed before nng allocates memory for the connection.
 * Open connections are counted per listener, and per source (base/source.h) at each listener. A libnng that calls accept4()
 * is not limited: test_accept fails then.
 *
 * Threads   any; turned_away() is called on nng's.
 */
#ifndef TC_NNG_ACCEPT_H
#define TC_NNG_ACCEPT_H

#include <stdint.h>
#include <sys/socket.h>

enum { TC_NNG_PEER_MAX = 63 };

struct tc_nng_accept_limits {
  unsigned connections_max;  /* per listener */
  unsigned source_max;       /* per source at one listener */
  unsigned descriptors_kept; /* descriptors that must stay free in the process; */
  unsigned few;              /* half of them is enough for the first few peers */
  void (*turned_away)(void *self, const char *peer, const char *why); /* may be NULL */
  void *self;
};

/* Sets the limits for all listeners of nng in this process. NULL: no limits. */
void tc_nng_accept_limit(const struct tc_nng_accept_limits *limits);

#endif
