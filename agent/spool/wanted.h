/* SPDX-License-Identifier: Apache-2.0 */
/* A pending snap request in one word: how far it reaches back, plus 1; 0: no request.
 *
 * Of two requests the one that reaches back further counts, since taking the other would forget data; back 0, all data,
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

/* Returns false if there is no request. */
static inline bool ta_wanted_take(atomic_ullong *wanted, uint64_t *back) {
  unsigned long long word = atomic_exchange(wanted, 0);

  *back = word - 1;
  return word != 0;
}

#endif
