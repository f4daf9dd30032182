/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the names in a trace: each string becomes "x" and 16 digits of a keyed hash, equal strings equal hashes. Events, times,
 * stacks and numbers stay as they are, byte for byte.
 *
 * Reasons of waits and stops that are in our tables, and functions of Go's standard library, stay readable. Other words may be a newer Go's,
 * but cannot be told from a C program's own reasons (ta_wait_begin) or a secret. Experiments are left out: their batches have formats
 * of their own.
 *
 * Memory    two batches.
 * Errors    TB_BROKEN: a table of strings cannot be read, none of its names is written; TB_IO: see errno. diag has the place.
 */
#ifndef TK_ANONYMIZE_REWRITE_H
#define TK_ANONYMIZE_REWRITE_H

#include <stdio.h>

#include "base/result.h"

enum { TK_ANONYMIZE_KEY_BYTES = 32 };

struct tk_anonymized {
  uint64_t strings, kept;        /* replaced, and left readable */
  uint64_t experimental_batches; /* left out */
  uint64_t experimental_events;  /* events in these batches */
};

TB_MUST tb_rc tk_anonymize(const char *path, const unsigned char key[TK_ANONYMIZE_KEY_BYTES],
                           FILE *out, struct tb_diag *diag, struct tk_anonymized *sums);

#endif
