/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by time, with exactly the permutation of Go's slices.SortFunc.
 *
 * The sort is not stable, but the final order of entries with equal times decides which thread goes first
 * and is visible in the output. So the algorithm (pattern-defeating quicksort: insertion sort up to 12
 * entries, heap sort after bad pivots) is part of the contract.
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
