/* SPDX-License-Identifier: Apache-2.0 */
/* Says on stderr what was meant by a KIND that does not exist. */
#ifndef TK_REPORT_KINDS_H
#define TK_REPORT_KINDS_H

/* next: the argument after it; NULL: none. Returns TK_USAGE. */
int tk_kind_unknown(const char *text, const char *next);

#endif
