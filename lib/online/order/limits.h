/* SPDX-License-Identifier: Apache-2.0 */
/* How much of memory and time a reader spends on one generation. */
#ifndef TO_ORDER_LIMITS_H
#define TO_ORDER_LIMITS_H

#include <stdint.h>

struct to_limits {
  uint64_t generation_bytes_max; /* of one generation; 0: no limit */
  /* Threads tried in vain in Go's own order, half of those that were sorted for it included; 0: 64 an event and 4 M. Then threads that
   * wait are parked: the same order but for events of equal time. */
  uint64_t exact_tries;
  uint64_t
      fuel_tries; /* attempts of parked threads, and steps of rare walks, beyond 64 an event; 0: 1 M. Then TB_FUEL. */
};

#endif
