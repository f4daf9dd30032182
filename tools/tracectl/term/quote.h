/* SPDX-License-Identifier: Apache-2.0 */
/* A string in quotes, escaped as Go's %q escapes it: the C escapes, \xNN for what is no UTF-8 and for
 * control characters, \uNNNN and \UNNNNNNNN for what Unicode does not call printable. */
#ifndef TK_TERM_QUOTE_H
#define TK_TERM_QUOTE_H

#include "tools/tracectl/term/out.h"

void tk_out_quoted(struct tk_out *out, const void *bytes, size_t n);
/* The same for JSON: what is no UTF-8 becomes U+FFFD. */
void tk_out_json_string(struct tk_out *out, const void *bytes, size_t n);
/* Without quotes and escapes, for people: '?' for what is not printable (tools/tracectl/term/plain.h). */
void tk_out_plain(struct tk_out *out, const char *text, size_t n);

#endif
