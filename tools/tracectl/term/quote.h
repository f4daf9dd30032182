/* SPDX-License-Identifier: Apache-2.0 */
/* Quotes a string like Go's %q: C escapes, \xNN for invalid UTF-8 and control characters, \uNNNN and
 * \UNNNNNNNN for unprintable characters. */
#ifndef TK_TERM_QUOTE_H
#define TK_TERM_QUOTE_H

#include "tools/tracectl/term/out.h"

void tk_out_quoted(struct tk_out *out, const void *bytes, size_t n);
/* Quotes for JSON: invalid UTF-8 becomes U+FFFD. */
void tk_out_json_string(struct tk_out *out, const void *bytes, size_t n);
/* Writes without quotes and escapes, for people: '?' for unprintable characters
 * (tools/tracectl/term/plain.h). */
void tk_out_plain(struct tk_out *out, const char *text, size_t n);

#endif
