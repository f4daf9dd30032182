/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of numbers that a statement compares with text: `duration_ns > '10ms'`. SQLite takes any text for greater than any number. */
#ifndef TK_NAMES_NUMBERS_H
#define TK_NAMES_NUMBERS_H

/* Prints a line on stderr for each such comparison, but for a few at most. */
void tk_numbers_check(const char *sql);

#endif
