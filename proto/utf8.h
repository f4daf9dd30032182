/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a traced program may be any bytes; a proto3 string may not. */
#ifndef TP_UTF8_H
#define TP_UTF8_H

#include <stddef.h>

/* How many bytes from the start are whole UTF-8 characters, NUL not among them. */
size_t tp_utf8_whole(const void *text, size_t n);

/* Copies with U+FFFD for each byte that is none: out has room for 3 * n. Answers the bytes written. */
size_t tp_utf8_repair(const void *text, size_t n, char *out);

#endif
