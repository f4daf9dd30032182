/* SPDX-License-Identifier: Apache-2.0 */
/* Positions are absolute in the whole array, because two of the algorithm's conditions read entries before
 * the part being sorted: the entry before a part is its lower bound, and a shift may go on to the left. */
#include "online/event/heap.h"

enum { INSERTION_MAX = 12, NINTHER_MIN = 50, SHIFT_MIN = 50, SHIFTS_MAX = 5, SWAPS_MAX = 4 * 3 };

enum hint { UNKNOWN, RISING, FALLING };

static inline bool before(const struct to_heap_entry *e, size_t i, size_t j) {
  return e[i].time < e[j].time;
}

static inline void swap(struct to_heap_entry *e, size_t i, size_t j) {
  struct to_heap_entry kept = e[i];
  e[i] = e[j];
  e[j] = kept;
}

static unsigned bit_length(uint64_t n) {
  return n == 0 ? 0 : 64 - (unsigned)__builtin_clzll(n);
}

static void insertion_sort(struct to_heap_entry *e, size_t lo, size_t hi) {
  for (size_t i = lo + 1; i < hi; i++)
    for (size_t j = i; j > lo && before(e, j, j - 1); j--) swap(e, j, j - 1);
}

static void sink(struct to_heap_entry *e, size_t base, size_t root, size_t n) {
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= n) return;
    if (child + 1 < n && before(e, base + child, base + child + 1)) child++;
    if (!before(e, base + root, base + child)) return;
    swap(e, base + root, base + child);
    root = child;
  }
}

static void heap_sort(struct to_heap_entry *e, size_t lo, size_t hi) {
  size_t n = hi - lo;

  for (size_t i = (n - 1) / 2 + 1; i-- > 0;) sink(e, lo, i, n);
  for (size_t i = n; i-- > 0;) {
    swap(e, lo, lo + i);
    sink(e, lo, 0, i);
  }
}

/* Returns the position of the middle one of three entries. */
static size_t median(const struct to_heap_entry *e, size_t a, size_t b, size_t c, int *swaps) {
  size_t kept;

  if (before(e, b, a)) kept = a, a = b, b = kept, ++*swaps;
  if (before(e, c, b)) kept = b, b = c, c = kept, ++*swaps;
  if (before(e, b, a)) b = a, ++*swaps;
  return b;
}

static size_t choose_pivot(const struct to_heap_entry *e, size_t lo, size_t hi,
                           enum hint *out_hint) {
  size_t n = hi - lo, quarter = n / 4;
  size_t i = lo + quarter, j = lo + quarter * 2, k = lo + quarter * 3;
  int swaps = 0;

  if (n >= NINTHER_MIN) {
    i = median(e, i - 1, i, i + 1, &swaps);
    j = median(e, j - 1, j, j + 1, &swaps);
    k = median(e, k - 1, k, k + 1, &swaps);
  }
  j = median(e, i, j, k, &swaps); /* never called below 8 entries: those are insertion-sorted */
  *out_hint = swaps == 0 ? RISING : swaps == SWAPS_MAX ? FALLING : UNKNOWN;
  return j;
}

static void reverse(struct to_heap_entry *e, size_t lo, size_t hi) {
  for (size_t i = lo, j = hi - 1; i < j; i++, j--) swap(e, i, j);
}

/* Swaps three entries around the middle with pseudo-random ones: breaks patterns that make bad pivots. */
static void scatter(struct to_heap_entry *e, size_t lo, size_t hi) {
  size_t n = hi - lo, middle = lo + n / 4 * 2;
  uint64_t state = n, mask = (UINT64_C(1) << bit_length(n)) - 1;

  for (size_t i = middle - 1; i <= middle + 1; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    size_t other = (size_t)(state & mask);
    if (other >= n) other -= n;
    swap(e, i, lo + other);
  }
}

/* True if a few shifts of neighbours were enough to sort the part. */
static bool sort_by_shifts(struct to_heap_entry *e, size_t lo, size_t hi) {
  size_t i = lo + 1;

  for (int shift = 0; shift < SHIFTS_MAX; shift++) {
    while (i < hi && !before(e, i, i - 1)) i++;
    if (i == hi) return true;
    if (hi - lo < SHIFT_MIN) return false;
    swap(e, i, i - 1);
    if (i - lo >= 2)
      for (size_t j = i - 1; j >= 1 && before(e, j, j - 1); j--) swap(e, j, j - 1);
    if (hi - i >= 2)
      for (size_t j = i + 1; j < hi && before(e, j, j - 1); j++) swap(e, j, j - 1);
  }
  return false;
}

/* Moves equal entries to the left, greater ones to the right; returns the begin of the right part. */
static size_t split_equal(struct to_heap_entry *e, size_t lo, size_t hi, size_t pivot) {
  size_t i = lo + 1, j = hi - 1;

  swap(e, lo, pivot);
  for (;;) {
    while (i <= j && !before(e, lo, i)) i++;
    while (i <= j && before(e, lo, j)) j--;
    if (i > j) return i;
    swap(e, i++, j--);
  }
}

/* Moves smaller entries to the left of the pivot; returns the pivot's final place. */
static size_t split(struct to_heap_entry *e, size_t lo, size_t hi, size_t pivot,
                    bool *out_was_split) {
  size_t i = lo + 1, j = hi - 1;

  *out_was_split = true;
  swap(e, lo, pivot);
  for (;;) {
    while (i <= j && before(e, i, lo)) i++;
    while (i <= j && !before(e, j, lo)) j--;
    if (i > j) break;
    *out_was_split = false;
    swap(e, i++, j--);
  }
  swap(e, j, lo);
  return j;
}

static void sort_part(struct to_heap_entry *e, size_t lo, size_t hi, unsigned bad_pivots_left) {
  bool balanced = true, was_split = true;

  for (;;) {
    size_t n = hi - lo;
    enum hint hint;

    if (n <= INSERTION_MAX) return insertion_sort(e, lo, hi);
    if (bad_pivots_left == 0) return heap_sort(e, lo, hi);
    if (!balanced) {
      scatter(e, lo, hi);
      bad_pivots_left--;
    }
    size_t pivot = choose_pivot(e, lo, hi, &hint);
    if (hint == FALLING) {
      reverse(e, lo, hi);
      pivot = (hi - 1) - (pivot - lo);
      hint = RISING;
    }
    if (balanced && was_split && hint == RISING && sort_by_shifts(e, lo, hi)) return;
    if (lo > 0 && !before(e, lo - 1, pivot)) {
      lo = split_equal(e, lo, hi, pivot);
      continue;
    }
    size_t middle = split(e, lo, hi, pivot, &was_split);
    size_t left = middle - lo, right = hi - middle;
    balanced = (left < right ? left : right) >= n / 8;
    if (left < right) {
      sort_part(e, lo, middle, bad_pivots_left);
      lo = middle + 1;
    } else {
      sort_part(e, middle + 1, hi, bad_pivots_left);
      hi = middle;
    }
  }
}

void to__sort(struct to_heap_entry *entries, size_t n) {
  if (n > 1) sort_part(entries, 0, n, bit_length(n));
}
