/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts numbers of rows by what the rows hold, in place and without memory (libc's may take some). */
#ifndef TO_WINDOW_TOP_ROWS_H
#define TO_WINDOW_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if row a stands before row b; equal rows must differ (by number), else their order is any. */
typedef bool to_top_rows_fn(const void *rows, uint32_t a, uint32_t b);

/* The first `top` of n numbers stand in order then, the others in any. */
void to_top_rows(uint32_t *numbers, size_t n, size_t top, to_top_rows_fn *before, const void *rows);

#endif
