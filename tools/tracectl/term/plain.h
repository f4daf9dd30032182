/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text of others (a traced program, a collector, a file) safe for a terminal.
 *
 * Terminals obey control characters: C0, DEL, and C1 as U+0080 to U+009F or, in 8-bit modes, as single bytes. Marks of
 * writing direction reorder a line. Each character that is not printable according to Unicode, and each byte that is not part
 * of a character, becomes '?'. All verbs print such text for people through this file; tools/tracectl/term/quote.h escapes
 * the same characters.
 */
#ifndef TK_TERM_PLAIN_H
#define TK_TERM_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the length of the UTF-8 sequence at p (1 to 4), or 0 if there is none. Refuses overlong forms,
 * surrogates, and values above U+10FFFF. n > 0. */
size_t tk_rune(const unsigned char *p, size_t n, uint32_t *out);
/* Like Go's unicode.IsPrint: the only space is U+0020. */
bool tk_rune_is_printable(uint32_t rune);

/* Returns the length of the next character or stray byte (n > 0); *out_plain: it may be shown. */
size_t tk_plain_next(const char *text, size_t n, bool *out_plain);
/* Works in place; returns the new length, which is never larger. */
size_t tk_plain(char *text, size_t n);
/* tk_plain() for a NUL-terminated text. */
void tk_plain_text(char *text);
void tk_put_plain(FILE *out, const char *text);

#endif
