/* SPDX-License-Identifier: Apache-2.0 */
/* The bundles of one lease that its reader has not acknowledged.
 *
 *   loops ──> add() ... [ 7 | 8 | 9 ] ... next(after) ──> reader
 *                         └─ if there is no room the oldest is dropped, and its events are counted as lost
 *
 * A bundle has a number and a position: the number of the lease's events before it, including lost ones. The loss
 * before a bundle is the difference of two positions, so the same question gets the same answer.
 *
 * Memory    bytes_max of bundles, each malloc'ed by the loop that made it.
 * Threads   use each object from one thread at a time.
 * Errors    next: TB_PROTOCOL: `after` is not a bundle from which this reader may continue.
 */
#ifndef TC_LEASE_WINDOW_H
#define TC_LEASE_WINDOW_H

#include "base/magic.h"
#include "base/result.h"

enum { TC_BUNDLE_MAGIC = 0x0b90d106 };

/* A packed EventBundle without number and loss, or a loop's report that it has a lease. */
struct tc_bundle {
  struct tc_bundle *next;
  bool ready; /* the loop has the lease; no other field is set */
  uint64_t lease;
  uint64_t events;           /* 0: the bundle only reports a loss */
  uint64_t lost_before;      /* events that its loop dropped since the previous bundle */
  uint64_t number, position; /* set by the window */
  size_t len;
  uint32_t magic; /* TC_BUNDLE_MAGIC */
  unsigned char bytes[];
};

/* The other fields are zeroed, bytes are not. Returns NULL if memory cannot be allocated. */
struct tc_bundle *tc_bundle_new(uint64_t lease, size_t len);
void tc_bundle_free(struct tc_bundle *bundle);

struct tc_lease_window {
  struct tc_bundle *first, **end;
  size_t bytes, bytes_max;
  uint64_t number;   /* of the newest */
  uint64_t position; /* after the newest */
  struct tc_lease_mark {
    uint64_t number, position; /* number of a bundle, position after it */
  } acked, sent;
  uint64_t lost; /* events that the reader will never see */
};

void tc_lease_window_init(struct tc_lease_window *w, size_t bytes_max);
void tc_lease_window_fini(struct tc_lease_window *w);

/* Owns bundle. Drops old bundles to stay within bytes_max. */
void tc_lease_window_add(struct tc_lease_window *w, struct tc_bundle *bundle);
/* Drops the oldest; returns false if there is none. */
bool tc_lease_window_drop(struct tc_lease_window *w);

/* Acknowledges all up to after (0: nothing) and returns the next *out_n bundles, chained from *out and lent
 * until the next call: at most bytes_max, but at least one. *out_lost: events lost between what was
 * acknowledged and the first of them. */
TB_MUST tb_rc tc_lease_window_next(struct tc_lease_window *w, uint64_t after, size_t bytes_max,
                                   const struct tc_bundle **out, size_t *out_n, uint64_t *out_lost);

#endif
