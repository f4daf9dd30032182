/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting by time, in the very permutation of Go's slices.SortFunc.
 *
 * Entries of equal time keep no order of their own, but what order they end up in decides which thread
 * goes first and is visible in the output; so the algorithm (pattern-defeating quicksort: insertion
 * sort up to 12 entries, heap sort when pivots turn out badly) is part of the contract.
 */
#ifndef TO_EVENT_HEAP_H
#define TO_EVENT_HEAP_H

#include "online/event/event.h"

struct to_heap_entry {
  to_ns time;
  void *value;
};

void to__sort(struct to_heap_entry *entries, size_t n);

#endif
