/* SPDX-License-Identifier: Apache-2.0 */
/* A trace with other names: each string of its tables becomes "x" and 16 digits of a keyed hash, equal ones the same. Events, times, stacks
 * and numbers stay as they are, byte for byte.
 *
 * What stays readable: why goroutines wait and the world stops, in words that our tables have, and functions of Go's standard library. Other
 * words may be those of a newer Go, but a C program's own reasons (ta_wait_begin) look the same, and so does any secret. Experiments are left out: their
 * batches hold names in forms of their own.
 *
 * Memory    two batches.
 * Errors    TB_BROKEN: a table of strings cannot be read, and no name of it is written; TB_IO: errno says why. diag says the place.
 */
#ifndef TK_ANONYMIZE_REWRITE_H
#define TK_ANONYMIZE_REWRITE_H

#include <stdio.h>

#include "base/result.h"

enum { TK_ANONYMIZE_KEY_BYTES = 32 };

struct tk_anonymized {
  uint64_t strings, kept;        /* replaced, and left as they are */
  uint64_t experimental_batches; /* left out, and */
  uint64_t experimental_events;  /* events of theirs */
};

TB_MUST tb_rc tk_anonymize(const char *path, const unsigned char key[TK_ANONYMIZE_KEY_BYTES],
                           FILE *out, struct tb_diag *diag, struct tk_anonymized *sums);

#endif
