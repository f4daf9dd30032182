/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the comparison of two traces: a table of each metric for people, or a JSON object a
 * row. */
#ifndef TK_DIFF_PRINT_H
#define TK_DIFF_PRINT_H

#include "tools/tracectl/diff/compare.h"

/* rows: of each metric, those with most time; 0: all. Returns false if memory cannot be
 * allocated. */
bool tk_diff_print(struct tk_comparison *comparison, size_t rows, bool json);

#endif
