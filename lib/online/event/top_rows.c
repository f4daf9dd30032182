/* SPDX-License-Identifier: Apache-2.0 */
/* A heap with the first row at its root: n + top * log n, whatever a peer sends. */
#include "online/event/top_rows.h"

static void swap(uint32_t *a, uint32_t *b) {
  uint32_t other = *a;
  *a = *b;
  *b = other;
}

static void sift_down(uint32_t *numbers, size_t root, size_t n, to_top_rows_fn *before,
                      const void *rows) {
  for (size_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && before(rows, numbers[child + 1], numbers[child])) child++;
    if (!before(rows, numbers[child], numbers[root])) return;
    swap(&numbers[root], &numbers[child]);
  }
}

void to_top_rows(uint32_t *numbers, size_t n, size_t top, to_top_rows_fn *before,
                 const void *rows) {
  if (top > n) top = n;
  for (size_t i = n / 2; i-- > 0;) sift_down(numbers, i, n, before, rows);
  for (size_t left = n; left > n - top;) { /* the first rows collect at the end, reversed */
    swap(&numbers[0], &numbers[--left]);
    sift_down(numbers, 0, left, before, rows);
  }
  for (size_t i = 0; i < n / 2; i++) swap(&numbers[i], &numbers[n - 1 - i]);
}
