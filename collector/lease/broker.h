/* SPDX-License-Identifier: Apache-2.0 */
/* Leased event streams: readers' filters, and the windows of what they have not read.
 *
 *   HTTP ──asks──> leases (one thread) ──orders──> taps of all loops
 *        <─answers──┘        └───<──bundles──────────┘
 *
 * The thread owns every window; loops and readers speak to it by messages. A question that must wait is
 * kept here: any number of readers may poll. A lease is its owner's, and another's question is refused.
 *
 * Memory    bundles: lease.window each, lease.memory_max together (the largest window gives way), and
 *           TC_LEASE_TRANSIT_BYTES on the way from each loop.
 * Threads   post: the loop's. ask, leave: any. The rest: the one that made it. answer() is called on the leases'
 *           thread.
 * Errors    new: TB_IO (eventfd), TB_NOMEM. start: TB_IO. Answers, in words: TB_NOTFOUND, TB_REFUSED (another's, or revoked),
 *           TB_PROTOCOL (no such bundle), TB_BUDGET (the owner has enough), TB_BUSY, TB_IO.
 */
#ifndef TC_LEASE_BROKER_H
#define TC_LEASE_BROKER_H

#include <stdatomic.h>

#include "collector/lease/window.h"
#include "collector/model/counters.h"
#include "config/table.h"
#include "online/analysis/filter.h"
#include "tls/revocations.h"

enum {
  TC_LEASE_NAME_MAX = 64,
  TC_LEASE_TRANSIT_BYTES = 16 << 20,
};

/* Which streams, and which of their events. */
struct tc_lease_filter {
  char service[TC_LEASE_NAME_MAX + 1], instance[TC_LEASE_NAME_MAX + 1];
  bool service_is_prefix, instance_is_prefix; /* "" with it: any */
  bool one_stream;
  unsigned char stream[16];
  struct to_filter events;
};

enum { TC_TAP_ORDER_MAGIC = 0x7a904d07 };

/* To a loop's tap. */
struct tc_event_tap_order {
  bool remove;
  uint64_t lease;
  uint32_t magic; /* TC_TAP_ORDER_MAGIC; the leases set it */
  struct tc_lease_filter filter;
};
void tc_event_tap_order_free(struct tc_event_tap_order *order);

enum tc_lease_ask_kind { TC_LEASE_OPEN, TC_LEASE_NEXT, TC_LEASE_RELEASE };

struct tc_lease_answer {
  tb_rc rc;
  const char *error; /* if rc is not TB_OK */
  uint64_t lease;    /* OPEN */
  size_t window_bytes;
  uint64_t expire_ns;
  const struct tc_bundle *bundles; /* NEXT: so many of them from here on; lent */
  size_t n;
  uint64_t lost; /* before the first */
};

struct tc_lease_ask {
  struct tc_lease_ask *next;
  enum tc_lease_ask_kind kind;
  struct tc_lease_filter filter; /* OPEN */
  size_t window_bytes;           /* OPEN; 0: as large as may be */
  uint64_t lease;                /* NEXT, RELEASE */
  /* The certificates of the reader that asks OPEN or NEXT, or NULL. The lease moves them out, or else answer() frees
   * them. */
  STACK_OF(X509) * reader;
  uint64_t owner; /* of its certificate's name or, without one, its user or address */
  uint64_t after; /* NEXT */
  unsigned wait_ms;
  size_t bytes_max;
  atomic_bool left; /* tc_leases_leave() */
  /* Once, and the last that is done with the ask: owns it. */
  void (*answer)(struct tc_lease_ask *ask, const struct tc_lease_answer *answer);
};

struct tc_leases_env {
  const struct tc_config *config; /* read by new() only */
  unsigned loops;
  void *self;
  /* Gives an order to a loop's tap, owned if true; false: no room, or the loop has ended. */
  bool (*order)(void *self, unsigned loop, struct tc_event_tap_order *order);
  struct tc_revocations *revoked; /* must outlive the leases; NULL: none are asked */
};

struct tc_leases;

TB_MUST tb_rc tc_leases_new(const struct tc_leases_env *env, struct tb_diag *diag,
                            struct tc_leases **out);
TB_MUST tb_rc tc_leases_start(struct tc_leases *leases, struct tb_diag *diag);
/* Answers what waits with TB_IO; later asks too. */
void tc_leases_stop(struct tc_leases *leases);
void tc_leases_free(struct tc_leases *leases); /* stopped, no loop runs; NULL is fine */

void tc_leases_ask(struct tc_leases *leases, struct tc_lease_ask *ask); /* owns it */
/* Who asks has gone: the answer comes soon, if it has not come yet, and what nobody knows of ends. */
void tc_leases_leave(struct tc_leases *leases, struct tc_lease_ask *ask);
/* Owns bundle if it answers true; false: no room now. */
bool tc_leases_post(struct tc_leases *leases, unsigned loop, struct tc_bundle *bundle);

/* Ends, soon, the leases whose last asker's certificate has been taken back. Any thread. */
void tc_leases_recheck(struct tc_leases *leases);

struct tc_metrics *tc_leases_metrics(struct tc_leases *leases);
uint64_t tc_leases_turns(
    const struct tc_leases *leases); /* of its thread, at least one a second; any thread */

#endif
