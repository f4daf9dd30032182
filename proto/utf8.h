/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checks: a proto3 string must be UTF-8, text of a traced program may be any bytes. */
#ifndef TP_UTF8_H
#define TP_UTF8_H

#include <stddef.h>

/* Returns the number of leading bytes that are whole UTF-8 characters other than NUL. */
size_t tp_utf8_whole(const void *text, size_t n);

/* Copies, with U+FFFD for each byte that is not part of a character: out has room for 3 * n. Returns
 * the bytes written. */
size_t tp_utf8_repair(const void *text, size_t n, char *out);

#endif
