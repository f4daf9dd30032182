/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers for people. Each function returns out, for use in a printf. */
#ifndef TK_TERM_FORMAT_UNITS_H
#define TK_TERM_FORMAT_UNITS_H

#include <stdint.h>

enum { TK_FORMAT_BYTES = 32 };

/* Three digits and a unit: "412 ns", "1.23 us", "45.6 ms", "12.3 s"; from a minute on "4 min 30 s", "3 h 12 min"; "-" for 0. */
const char *tk_format_ns(uint64_t ns, char out[TK_FORMAT_BYTES]);
/* "1,234,567". */
const char *tk_format_count(uint64_t n, char out[TK_FORMAT_BYTES]);

#endif
