/* SPDX-License-Identifier: Apache-2.0 */
/* A snap that is requested and not taken yet, in one word: how far it reaches back, and 1; 0: none is wanted.
 *
 * Of two the one that reaches further counts, since what the other leaves out would be forgotten; back 0, all there is,
 * reaches furthest.
 *
 * Threads   any, and signal handlers.
 */
#ifndef TA_SPOOL_WANTED_H
#define TA_SPOOL_WANTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline void ta_wanted_ask(atomic_ullong *wanted, uint64_t back) {
  unsigned long long mine = back < UINT64_MAX ? back + 1 : back, other = atomic_load(wanted), wider;

  do wider = other == 1 || (mine != 1 && other > mine) ? other : mine;
  while (!atomic_compare_exchange_weak(wanted, &other, wider));
}

/* False: none is wanted. */
static inline bool ta_wanted_take(atomic_ullong *wanted, uint64_t *back) {
  unsigned long long word = atomic_exchange(wanted, 0);

  *back = word - 1;
  return word != 0;
}

#endif
