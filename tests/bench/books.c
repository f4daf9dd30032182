/* SPDX-License-Identifier: Apache-2.0 */
#include "books.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

struct books *books_new(void) {
  void *memory = mmap(NULL, sizeof(struct books), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return memory == MAP_FAILED ? NULL : memory;
}

struct book *books_open(struct books *books) {
  unsigned at = atomic_fetch_add(&books->n, 1);

  if (at < BOOKS_MAX) return &books->all[at];
  errno = ENOSPC;
  return NULL;
}

void book_note(struct book *book, const struct ta_forward_status *status) {
  snprintf(book->stream, sizeof book->stream, "%s", status->stream);
  book->produced_batches = status->produced_batches;
  book->acked_batches = status->acked_batches;
  book->lost_batches = status->lost_batches;
}

bool books_write(const struct books *books, const char *path) {
  FILE *file = fopen(path, "w");
  unsigned n = books->n < BOOKS_MAX ? books->n : BOOKS_MAX;

  if (file == NULL) return false;
  for (unsigned i = 0; i < n; i++) {
    const struct book *book = &books->all[i];
    fprintf(file, "%s\t%s\t%llu\t%llu\t%llu\n", book->stream, book->ended ? "ended" : "cut",
            (unsigned long long)book->produced_batches, (unsigned long long)book->acked_batches,
            (unsigned long long)book->lost_batches);
  }
  return fclose(file) == 0;
}
