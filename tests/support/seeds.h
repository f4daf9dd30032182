/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle's twenty small traces (tests/oracle/seeds.sh describes each), for tests over real traces that need
 * AllocFree, several generations or a certain Go. */
#ifndef TT_SEEDS_H
#define TT_SEEDS_H

#include "fuzz/pack.h"

/* Loads the traces in the order of the table in seeds.sh. */
struct tt_pack tt_seeds_load(void);

struct tt_place { /* of a generation in its trace */
  size_t offset, bytes;
};
/* Finds the place of each generation in a trace, at most max; returns their number. */
size_t tt_generations(const unsigned char *trace, size_t n, struct tt_place *out, size_t max);

#endif
