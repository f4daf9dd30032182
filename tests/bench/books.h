/* SPDX-License-Identifier: Apache-2.0 */
/* Records what each stream of a fleet wrote and had acked, in memory that survives a killed process. At the end
 * check_books.py compares the records with what the collector has.
 *
 * Threads   one process writes an entry; the file is written when all processes have ended.
 * Errors    NULL, false: errno.
 */
#ifndef TT_BENCH_BOOKS_H
#define TT_BENCH_BOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "traceagent.h"

enum { BOOKS_MAX = 1 << 17 };

struct book {
  char stream[40];
  atomic_ullong produced_batches, acked_batches, lost_batches; /* at the last look */
  atomic_bool ended; /* stopped regularly, with everything acked or lost */
};

struct books {
  atomic_uint n;
  struct book all[BOOKS_MAX];
};

struct books *books_new(void);
struct book *books_open(struct books *books); /* NULL: none is free */
void book_note(struct book *book, const struct ta_forward_status *status);
/* Writes a line for each stream: STREAM ended|cut PRODUCED ACKED LOST, with tabs between. */
bool books_write(const struct books *books, const char *path);

#endif
