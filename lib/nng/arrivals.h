/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of our TLS listeners that are no pipe yet: each has a deadline, and all have a share of the places. Where it is
 * full the oldest of the source that has the most of them gives way to one that comes: a handshake costs its peer nothing, and many
 * of one source push out no other.
 *
 * Threads   one at a time: all calls under the engine's lock. Nothing of nng's that calls the engine holds what nng_aio_abort()
 *           takes.
 */
#ifndef TC_NNG_ARRIVALS_H
#define TC_NNG_ARRIVALS_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

struct tc__arrival {
  const void *of;  /* those of one share */
  uint64_t source; /* as in base/source.h */
  uint64_t expires_ns;
  nng_aio *reads; /* what fills nng's buffer; it lives as long as the connection; NULL: it has not begun */
  void (*ended)(struct tc__arrival *arrival, const char *why); /* once, unless it is taken out before */
  bool has_ended;
  struct tc__arrival *next, **at; /* at NULL: not among them */
};

/* most 0: as many as come. */
void tc__arrival_put(struct tc__arrival *arrival, unsigned most);
void tc__arrival_take_out(struct tc__arrival *arrival);
void tc__arrivals_expire(uint64_t now_ns);

#endif
