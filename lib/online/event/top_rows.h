/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts row numbers by the rows' contents, in place and without allocations (libc's qsort() may allocate). */
#ifndef TO_EVENT_TOP_ROWS_H
#define TO_EVENT_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if row a goes before row b. Compare equal rows by number, or their order is undefined. */
typedef bool to_top_rows_fn(const void *rows, uint32_t a, uint32_t b);

/* Sorts the first `top` of n numbers; the others are in any order. */
void to_top_rows(uint32_t *numbers, size_t n, size_t top, to_top_rows_fn *before, const void *rows);

#endif
