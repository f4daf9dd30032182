/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of regions that do not end their goroutine's innermost region, by their stack. Go's reader refuses such a trace; with
 * TO_READER_PAST_ANNOTATIONS ours continues, and cuts that goroutine's regions there.
 *
 * Memory    4 KiB from mem, allocated for the first one. Stacks after TO_MISNESTED_MAX are only counted in `ends`.
 */
#ifndef TO_SPANS_MISNESTED_H
#define TO_SPANS_MISNESTED_H

#include "online/event/event.h"

enum { TO_MISNESTED_MAX = 16, TO_MISNESTED_NAME = 96 };

struct to_misnested_region {
  uint64_t task;
  uint32_t stack;               /* to_spans_callstack() */
  char name[TO_MISNESTED_NAME]; /* truncated, ends with a NUL */
};
struct to_misnested {
  uint64_t count;
  to_ns first, last;
  int64_t goroutine;                      /* of the last misnesting, as are the next two fields */
  struct to_misnested_region ended, open; /* stacks: of the end; of the innermost one's begin */
};
struct to_misnesting {
  uint64_t ends;
  to_ns generation; /* begin of the last generation */
  size_t n;
  struct to_misnested at[TO_MISNESTED_MAX];
};

#endif
