/* SPDX-License-Identifier: Apache-2.0 */
/* How long a test waits for what must come: only a failure takes so long, and a busy machine is none. */
#ifndef TT_PATIENCE_H
#define TT_PATIENCE_H

#include <unistd.h>

enum { TT_PATIENCE_S = 90, TT_PATIENCE_MS = TT_PATIENCE_S * 1000 };

/* In a test of Criterion's: looks again each millisecond. */
#define TT_WAIT_UNTIL(condition)                                                                   \
  do {                                                                                             \
    for (int tries_ = 0; !(condition) && tries_ < TT_PATIENCE_MS; tries_++) usleep(1000);          \
    cr_assert((condition), "in time: " #condition);                                                \
  } while (0)

#endif
