/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks that led to events, each with a count.
 *
 * A slot belongs to one stack for good: the thread that takes it, by a compare-and-swap of the hash, fills it in and sets
 * `ready`; other threads with that hash only count. Two stacks with the same 64-bit hash count as one.
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
  atomic_bool ready; /* the fields below are complete, and will not change */
  unsigned n;
  char module[32], name[64];  /* copies, cut: the event's own texts may be unloaded */
  void *pc[TA_PROFILE_DEPTH]; /* return addresses, innermost first */
};

struct ta_profile {
  unsigned slots;          /* a power of two */
  _Atomic uint64_t others; /* events whose stacks found no slot */
  struct ta_profile_slot slot[];
};

#endif
