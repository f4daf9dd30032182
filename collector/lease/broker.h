/* SPDX-License-Identifier: Apache-2.0 */
/* Leased event streams: readers' filters, and windows of events that they have not read yet.
 *
 *   HTTP ──asks──> leases (one thread) ──orders──> taps of all loops
 *        <─answers──┘        └───<──bundles──────────┘
 *
 * The thread owns every window; loops and readers communicate with it by messages. A request that must wait is
 * kept here, so any number of readers may poll. A lease belongs to an owner; requests of others are refused.
 *
 * Memory    bundles: lease.window each, lease.memory_max together (the largest window drops bundles), and
 *           TC_LEASE_TRANSIT_BYTES in transit from each loop.
 * Threads   post: the loop's. ask, leave: any. Others: the creating thread. answer() is called on the leases'
 *           thread.
 * Errors    new: TB_IO (eventfd), TB_NOMEM. start: TB_IO. Answers, with a text: TB_NOTFOUND, TB_REFUSED (another
 *           owner's lease, or revoked), TB_PROTOCOL (no such bundle), TB_BUDGET (lease.owner_max is reached), TB_BUSY, TB_IO.
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

/* Selects streams, and events of these streams. */
struct tc_lease_filter {
  char service[TC_LEASE_NAME_MAX + 1], instance[TC_LEASE_NAME_MAX + 1];
  bool service_is_prefix, instance_is_prefix; /* an empty prefix fits any */
  bool one_stream;
  unsigned char stream[16];
  struct to_filter events;
};

enum { TC_TAP_ORDER_MAGIC = 0x7a904d07 };

/* Sent to a loop's tap. */
struct tc_event_tap_order {
  bool remove;
  uint64_t lease;
  uint32_t magic; /* TC_TAP_ORDER_MAGIC; set by the leases */
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
  const struct tc_bundle *bundles; /* NEXT: n bundles in a chain; lent */
  size_t n;
  uint64_t lost; /* events lost before the first bundle */
};

struct tc_lease_ask {
  struct tc_lease_ask *next;
  enum tc_lease_ask_kind kind;
  struct tc_lease_filter filter; /* OPEN */
  size_t window_bytes;           /* OPEN; 0: the largest allowed */
  uint64_t lease;                /* NEXT, RELEASE */
  /* Certificates of the reader that asks OPEN or NEXT, or NULL. The lease moves them out; if not, answer() frees them. */
  STACK_OF(X509) * reader;
  uint64_t owner; /* hash of the certificate's name or, without one, of user or address */
  uint64_t after; /* NEXT */
  unsigned wait_ms;
  size_t bytes_max;
  atomic_bool left; /* tc_leases_leave() */
  /* Called exactly once and last; owns the ask. */
  void (*answer)(struct tc_lease_ask *ask, const struct tc_lease_answer *answer);
};

struct tc_leases_env {
  const struct tc_config *config; /* read by new() only */
  unsigned loops;
  void *self;
  /* Sends an order to a loop's tap, which owns it if this returns true. Returns false if there is no room or the loop has
   * ended. */
  bool (*order)(void *self, unsigned loop, struct tc_event_tap_order *order);
  struct tc_revocations *revoked; /* must outlive the leases; NULL: no revocation checks */
};

struct tc_leases;

TB_MUST tb_rc tc_leases_new(const struct tc_leases_env *env, struct tb_diag *diag,
                            struct tc_leases **out);
TB_MUST tb_rc tc_leases_start(struct tc_leases *leases, struct tb_diag *diag);
/* Answers queued and later asks with TB_IO. */
void tc_leases_stop(struct tc_leases *leases);
/* Call stop() first, and end the loops; NULL is fine. */
void tc_leases_free(struct tc_leases *leases);

void tc_leases_ask(struct tc_leases *leases, struct tc_lease_ask *ask); /* owns it */
/* Call when the asker has disconnected: an answer that is still due comes soon, and a lease that the asker never heard of
 * ends. */
void tc_leases_leave(struct tc_leases *leases, struct tc_lease_ask *ask);
/* Returns true and owns bundle, or false if there is no room now. */
bool tc_leases_post(struct tc_leases *leases, unsigned loop, struct tc_bundle *bundle);

/* Soon ends leases whose reader's certificate has been revoked. Any thread. */
void tc_leases_recheck(struct tc_leases *leases);

struct tc_metrics *tc_leases_metrics(struct tc_leases *leases);
/* Turns of the leases' thread, at least one a second; any thread. */
uint64_t tc_leases_turns(const struct tc_leases *leases);

#endif
