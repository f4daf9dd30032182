/* SPDX-License-Identifier: Apache-2.0 */
/* How long a test waits for an event that must happen. Only a failing test waits that long, and a busy machine is not a
 * failure. TC_PATIENCE in the environment multiplies it, as for the end-to-end tests: how much slower than two free
 * cores this machine may be. Test cases have no timeout of their own; ctest ends an entry that hangs. */
#ifndef TT_PATIENCE_H
#define TT_PATIENCE_H

#include <stdlib.h>
#include <unistd.h>

static inline int tt_patience_s(void) {
  const char *factor = getenv("TC_PATIENCE");
  double s = 180 * (factor != NULL ? atof(factor) : 1);

  return s < 1 ? 1 : s > 100000 ? 100000 : (int)s;
}

#define TT_PATIENCE_S  tt_patience_s()
#define TT_PATIENCE_MS (TT_PATIENCE_S * 1000)

/* Whether the test makes a full sweep (`make soak`) instead of a sample (`make test`). */
static inline _Bool tt_full(void) {
  const char *text = getenv("TC_FULL");

  return text != NULL && *text != '\0';
}

/* Size of a sweep: the full one, and a smaller one under a sanitizer, which is ten times slower. */
#ifdef TC_SANITIZED
#define TT_LESS(all, sanitized) (sanitized)
#else
#define TT_LESS(all, sanitized) (all)
#endif

/* For tests under Criterion: checks the condition every millisecond. */
#define TT_WAIT_UNTIL(condition)                                                                   \
  do {                                                                                             \
    for (int left_ = TT_PATIENCE_MS; !(condition) && left_ > 0; left_--) usleep(1000);             \
    cr_assert((condition), "in time: " #condition);                                                \
  } while (0)

#endif
