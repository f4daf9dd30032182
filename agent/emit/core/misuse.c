/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/misuse.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/emit/core/emit.h"

bool ta_misuse_aborts = TA_DEBUG;
atomic_bool ta_misuse_unreported;

__attribute__((cold)) void ta_misuse(struct ta_thread *t, const char *what) {
  atomic_fetch_add_explicit(&t->misused, 1, memory_order_relaxed);
  if (!ta_misuse_aborts) return;
  fprintf(stderr, "traceagent: misuse: %s\n", what);
  abort();
}

__attribute__((cold)) void ta_misuse_end(struct ta_thread *t, const char *what) {
  bool may_have_begun = ta_emit.session > 1 || atomic_load(&ta_misuse_unreported);

  if (may_have_begun)
    atomic_fetch_add_explicit(&t->misused, 1, memory_order_relaxed);
  else
    ta_misuse(t, what);
}
