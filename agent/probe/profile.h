/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks that led to events, each with a count.
 *
 * A slot is a stack's for good: the thread that takes it by a compare-and-swap of the hash fills it in, then says it
 * is ready; others that see the hash only count. Two stacks of one 64-bit hash count as one.
 */
#ifndef TA_PROFILE_H
#define TA_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "traceprobe.h"

enum { TA_PROFILE_DEPTH = 64 };

struct ta_profile_slot {
  _Atomic uint64_t hash; /* 0: free */
  _Atomic uint64_t count;
  atomic_bool ready; /* the rest is there, and will not change */
  unsigned n;
  char module[32], name[64];  /* of the event, cut: its own are gone when it is unloaded */
  void *pc[TA_PROFILE_DEPTH]; /* innermost first, where calls return to */
};

struct ta_profile {
  unsigned slots; /* a power of two */
  _Atomic uint64_t others;
  struct ta_profile_slot slot[];
};

#endif
