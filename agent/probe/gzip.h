/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a gzip file of stored blocks: for tools that require gzip, without a library that compresses. */
#ifndef TA_GZIP_H
#define TA_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool ta_gzip_store(FILE *out, const void *bytes, size_t n);

#endif
