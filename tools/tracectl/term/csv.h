/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of RFC 4180. The caller puts the commas; "\r\n" ends a line. */
#ifndef TK_TERM_CSV_H
#define TK_TERM_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Whether a text needs no quotes. */
bool tk_csv_is_plain(const char *text, size_t n);
/* In quotes where the text needs them; NULL: an empty cell. */
void tk_csv_put(FILE *out, const char *text);

#endif
