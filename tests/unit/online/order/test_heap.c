/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/event/heap.h"

/* The order of entries with equal time is visible in the order of events, so it must be that of Go's slices.SortFunc.
 * For each pattern: a hash over the permutations that Go 1.26 made of the same inputs, of lengths from 0 to 3,000. */
enum { PATTERNS = 7, LENGTH_MAX = 3000 };
static const uint64_t made_by_go[PATTERNS] = {
  UINT64_C(0xcb7107b3e9d2f024), UINT64_C(0xb58d8793797e3662), UINT64_C(0xe10b406bed2490e8),
  UINT64_C(0xdac364d35a24c43c), UINT64_C(0x800ddda75736672a), UINT64_C(0xb58d8793797e3662),
  UINT64_C(0xbcbfdbfe09c76818),
};

static uint64_t state;

static uint64_t next_random(void) { /* splitmix64 */
  uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static to_ns time_of(int pattern, size_t i, size_t n) {
  switch (pattern) {
  case 0: return (to_ns)(next_random() % (n / 4 + 1)); /* random, with ties */
  case 1: return (to_ns)(i / 3);                       /* rising */
  case 2: return (to_ns)((n - i) / 2);                 /* falling */
  case 3: return (to_ns)(i % 7);                       /* few values */
  case 4: return next_random() % 8 == 0 ? (to_ns)(next_random() % n) : (to_ns)i; /* nearly sorted */
  case 5: return 5;
  default: return i < n / 2 ? (to_ns)i : (to_ns)(n - i); /* rising, then falling */
  }
}

Test(keyed, sorts_into_the_permutation_of_go) {
  struct to_heap_entry *entries = calloc(LENGTH_MAX + 1, sizeof *entries);

  for (int pattern = 0; pattern < PATTERNS; pattern++) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    state = (uint64_t)pattern;
    for (size_t n = 0; n <= LENGTH_MAX; n += 1 + n / 9) {
      for (size_t i = 0; i < n; i++)
        entries[i] = (struct to_heap_entry){ time_of(pattern, i, n), (void *)(uintptr_t)i };
      to__sort(entries, n);
      for (size_t i = 0; i < n; i++) {
        cr_assert(i == 0 || entries[i - 1].time <= entries[i].time);
        hash = (hash ^ (uintptr_t)entries[i].value) * UINT64_C(0x100000001b3);
      }
    }
    cr_assert_eq(hash, made_by_go[pattern], "pattern %d", pattern);
  }
  free(entries);
}

/* So many bad pivots in a row that the sort stops choosing pivots and sorts the rest with a heap. */
Test(keyed, sorts_a_killer_of_pivots_into_the_permutation_of_go) {
  static const to_ns times[] = { 27, 10, 7,  24, 4,  10, 12, 34, 24, 34, 4,  38, 13, 1,  37, 37, 5,
                                 2,  17, 38, 0,  26, 9,  38, 7,  13, 22, 1,  25, 29, 37, 0,  9,  5,
                                 3,  12, 20, 19, 11, 6,  9,  29, 1,  3,  11, 17, 11, 8,  31 };
  enum { N = sizeof times / sizeof *times };
  struct to_heap_entry entries[N];
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < N; i++)
    entries[i] = (struct to_heap_entry){ times[i], (void *)(uintptr_t)i };
  to__sort(entries, N);
  for (size_t i = 0; i < N; i++)
    hash = (hash ^ (uintptr_t)entries[i].value) * UINT64_C(0x100000001b3);
  cr_assert_eq(hash, UINT64_C(0x6b0407ea2ce938c5));
}
