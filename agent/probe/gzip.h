/* SPDX-License-Identifier: Apache-2.0 */
/* A gzip file whose blocks are stored as they are: what tools that ask for gzip take, without a library that packs. */
#ifndef TA_GZIP_H
#define TA_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool ta_gzip_store(FILE *out, const void *bytes, size_t n);

#endif
