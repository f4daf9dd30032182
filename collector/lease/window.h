/* SPDX-License-Identifier: Apache-2.0 */
/* The bundles of one lease that its reader has not acknowledged.
 *
 *   loops ──> add() ... [ 7 | 8 | 9 ] ... next(after) ──> reader
 *                         └─ oldest go when there is no room; what is lost is counted
 *
 * A bundle has a number and a position: how many of the lease's events came before it, lost ones
 * included. The reader's loss before a bundle is therefore the difference of two positions, and asking twice
 * gives the same answer twice.
 *
 * Memory    bytes_max of bundles, each malloc'ed by the loop that made it.
 * Threads   use each object from one thread at a time.
 * Errors    next: TB_PROTOCOL: `after` is none of this lease's bundles that may be asked from.
 */
#ifndef TC_LEASE_WINDOW_H
#define TC_LEASE_WINDOW_H

#include "base/magic.h"
#include "base/result.h"

enum { TC_BUNDLE_MAGIC = 0x0b90d106 };

/* A packed EventBundle without number and loss; or the word of a loop that it has taken a lease in. */
struct tc_bundle {
  struct tc_bundle *next;
  bool ready; /* that word: nothing else is filled in */
  uint64_t lease;
  uint64_t events;           /* in it; 0: it only reports a loss */
  uint64_t lost_before;      /* that its loop had to drop since the bundle before */
  uint64_t number, position; /* the window's */
  size_t len;
  uint32_t magic; /* TC_BUNDLE_MAGIC */
  unsigned char bytes[];
};

/* The rest is zeroed, the bytes are not. NULL: no memory. */
struct tc_bundle *tc_bundle_new(uint64_t lease, size_t len);
void tc_bundle_free(struct tc_bundle *bundle);

struct tc_lease_window {
  struct tc_bundle *first, **end;
  size_t bytes, bytes_max;
  uint64_t number;   /* of the newest */
  uint64_t position; /* behind the newest */
  struct tc_lease_mark {
    uint64_t number, position; /* of a bundle, and behind it */
  } acked, sent;
  uint64_t lost; /* events that the reader will never see */
};

void tc_lease_window_init(struct tc_lease_window *w, size_t bytes_max);
void tc_lease_window_fini(struct tc_lease_window *w);

/* Owns bundle. The window stays within bytes_max. */
void tc_lease_window_add(struct tc_lease_window *w, struct tc_bundle *bundle);
/* Lets go of the oldest; false: there is none. */
bool tc_lease_window_drop(struct tc_lease_window *w);

/* Acknowledges all up to after (0: nothing) and answers the next ones: at most bytes_max, but one at
 * least; *out_n of them in a row from *out, lent until the next call. *out_lost: events between what
 * was acknowledged and the first of them. */
TB_MUST tb_rc tc_lease_window_next(struct tc_lease_window *w, uint64_t after, size_t bytes_max,
                                   const struct tc_bundle **out, size_t *out_n, uint64_t *out_lost);

#endif
