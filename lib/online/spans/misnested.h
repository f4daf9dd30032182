/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of regions that do not end their goroutine's innermost one, by the stack where they are. Go's reader refuses such a
 * trace; with TO_READER_PAST_ANNOTATIONS the pass goes on, and that goroutine's regions are cut there.
 *
 * Memory    4 KiB from mem, once there is one. Further stacks are counted in `ends` alone.
 */
#ifndef TO_SPANS_MISNESTED_H
#define TO_SPANS_MISNESTED_H

#include "online/event/event.h"

enum { TO_MISNESTED_MAX = 16, TO_MISNESTED_NAME = 96 };

struct to_misnested_region {
  uint64_t task;
  uint32_t stack;               /* to_spans_callstack() */
  char name[TO_MISNESTED_NAME]; /* cut, a NUL behind it */
};
struct to_misnested {
  uint64_t count;
  to_ns first, last;
  int64_t goroutine;                      /* of the last one, as what follows */
  struct to_misnested_region ended, open; /* the stacks of the end, and of the innermost one's begin */
};
struct to_misnesting {
  uint64_t ends;
  to_ns generation; /* where the last generation began */
  size_t n;
  struct to_misnested at[TO_MISNESTED_MAX];
};

#endif
