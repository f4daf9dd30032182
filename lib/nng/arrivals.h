/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals: peers of the TLS listeners that are not pipes yet. Each has a deadline, and their number is limited. At the limit
 * a new arrival replaces the oldest one of the source that has the most: handshakes cost a peer nothing, and one source
 * must not displace others.
 *
 * Threads   all calls under the engine's lock. nng never calls the engine with a lock that nng_aio_abort() takes.
 */
#ifndef TC_NNG_ARRIVALS_H
#define TC_NNG_ARRIVALS_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

struct tc__arrival {
  const void *of;  /* arrivals with the same `of` share a limit */
  uint64_t source; /* as in base/source.h */
  uint64_t expires_ns;
  nng_aio *reads; /* nng's read operation, valid as long as the connection; NULL: not started */
  void (*ended)(struct tc__arrival *arrival,
                const char *why); /* called once, unless removed before */
  bool has_ended;
  struct tc__arrival *next, **at; /* at NULL: not in the list */
};

/* most 0: no limit. */
void tc__arrival_put(struct tc__arrival *arrival, unsigned most);
void tc__arrival_take_out(struct tc__arrival *arrival);
void tc__arrivals_expire(uint64_t now_ns);

#endif
