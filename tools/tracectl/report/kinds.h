/* SPDX-License-Identifier: Apache-2.0 */
/* Which word is a KIND, and what was meant by one that does not exist. */
#ifndef TK_REPORT_KINDS_H
#define TK_REPORT_KINDS_H

#include <stdbool.h>

/* Is the first argument a KIND, right or misspelt? Else it is a FILE. next: the argument after it; NULL: none. */
bool tk_is_kind(const char *text, const char *next);
/* Is an argument after KIND another KIND, and no file? */
bool tk_is_second_kind(const char *text);
/* Says on stderr what was meant. Returns TK_USAGE. */
int tk_kind_unknown(const char *text, const char *next);

#endif
