/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others (a traced program, a collector, a file) as a terminal may get it.
 *
 * A terminal obeys control characters: C0, DEL, and C1 as U+0080 to U+009F or, in 8-bit modes, as single
 * bytes. Marks of writing direction reorder a line. Each character that Unicode does not call printable and each
 * byte that belongs to no character becomes '?'. Every verb that prints such text for people takes it through here;
 * tools/tracectl/term/quote.h escapes the same characters.
 */
#ifndef TK_TERM_PLAIN_H
#define TK_TERM_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of the UTF-8 sequence at p (1 to 4), or 0: p[0] begins none. No overlong forms, no surrogates,
 * nothing above U+10FFFF. n > 0. */
size_t tk_rune(const unsigned char *p, size_t n, uint32_t *out);
/* As Go's unicode.IsPrint: of all spaces only U+0020. */
bool tk_rune_is_printable(uint32_t rune);

/* Bytes of the next character or stray byte at text (n > 0); *out_plain: it may be shown. */
size_t tk_plain_next(const char *text, size_t n, bool *out_plain);
/* In place; answers the new length, which is never larger. */
size_t tk_plain(char *text, size_t n);
/* The same for what ends with a zero byte. */
void tk_plain_text(char *text);
void tk_put_plain(FILE *out, const char *text);

#endif
