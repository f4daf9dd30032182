/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by broker.c (the thread and its queues) and table.c (which handles their messages). */
#ifndef TC_LEASE_PRIVATE_H
#define TC_LEASE_PRIVATE_H

#include <pthread.h>

#include "collector/base/spsc_queue.h"
#include "collector/base/wakeup.h"
#include "collector/lease/broker.h"

struct tc__lease {
  uint64_t id;      /* 0: free */
  unsigned unready; /* loops that do not have it yet */
  struct tc_lease_window window;
  struct tc_lease_ask *waiting;
  STACK_OF(X509) * reader; /* certificates of the last reader that asked */
  uint64_t owner;          /* the owner that opened it */
  bool polled;             /* at least one NEXT */
  uint64_t waits_until_ns;
  uint64_t asked_ns;
};

/* A lease that ended, for readers that still ask for it. */
struct tc__lease_end {
  uint64_t id, owner, at_ns;
  const char *why;
};

enum { TC__LEASE_ENDS = 256 };

struct tc__inbox { /* one for each loop */
  struct tc_spsc_queue queue;
  atomic_size_t bytes; /* queued */
};

struct tc_leases {
  struct tc_leases_env env;
  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stopping, recheck, left;
  atomic_ullong turns;
  pthread_mutex_t lock; /* protects asks and closed */
  struct tc_lease_ask *asks, **asks_end;
  bool closed; /* asks are refused */
  struct tc__lease *lease;
  struct tc__lease_end ends[TC__LEASE_ENDS]; /* ring of the last ones */
  size_t n_ends;                             /* total */
  size_t max, owner_max; /* as configured; a reload may free the configuration */
  size_t window, memory_max;
  uint64_t expire_ns;
  size_t bytes; /* of all windows */
  struct tc_metrics metrics;
  struct tc__inbox inbox[];
};

/* All are called on the leases' thread. */
void tc__lease_bundle(struct tc_leases *l, unsigned loop, struct tc_bundle *bundle); /* owns it */
void tc__lease_recheck(struct tc_leases *l);
void tc__lease_ask(struct tc_leases *l, struct tc_lease_ask *ask); /* owns it */
uint64_t tc__lease_time(struct tc_leases *l); /* returns the time in ns for which nothing is due */

/* Answers an ask that cannot be met. */
void tc__lease_refuse(struct tc_lease_ask *ask, tb_rc rc, const char *error);

#endif
