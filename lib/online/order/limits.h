/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the memory and time that a reader spends on one generation. */
#ifndef TO_ORDER_LIMITS_H
#define TO_ORDER_LIMITS_H

#include <stdint.h>

struct to_limits {
  uint64_t generation_bytes_max; /* of one generation; 0: no limit */
  /* Limit on failed attempts in the order of Go's reader; sorting counts half an attempt a thread. 0: 64 an event plus 4 M.
   * Beyond the limit waiting threads are parked, which changes only the order of events of equal time. */
  uint64_t exact_tries;
  uint64_t
      fuel_tries; /* attempts of parked threads and steps of rare walks beyond 64 an event; 0: 1 M. More is TB_FUEL. */
};

#endif
