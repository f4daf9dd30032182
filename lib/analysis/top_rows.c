/* SPDX-License-Identifier: Apache-2.0 */
/* Heap sort: n log n at worst, whatever a peer sends. */
#include "analysis/top_rows.h"

static void sift_down(uint32_t *numbers, size_t root, size_t n, to_top_rows_fn *before,
                      const void *rows) {
  for (size_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && before(rows, numbers[child], numbers[child + 1])) child++;
    if (!before(rows, numbers[root], numbers[child])) return;
    uint32_t swap = numbers[root];
    numbers[root] = numbers[child];
    numbers[child] = swap;
  }
}

void to_top_rows(uint32_t *numbers, size_t n, to_top_rows_fn *before, const void *rows) {
  for (size_t i = n / 2; i-- > 0;) sift_down(numbers, i, n, before, rows);
  for (size_t last = n; last-- > 1;) {
    uint32_t swap = numbers[0];
    numbers[0] = numbers[last];
    numbers[last] = swap;
    sift_down(numbers, 0, last, before, rows);
  }
}
