/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a program's language: a report about a C program speaks of threads, not of goroutines. Texts are written in Go's words,
 * and this is the only place that changes them (online/words/words.def). So whoever shows a text to a person passes it through here, once,
 * as the last step; data that programs read is never changed.
 *
 * Memory    none of its own.
 * Threads   any.
 */
#ifndef TO_WORDS_WORDS_H
#define TO_WORDS_WORDS_H

#include "online/event/generation.h"

enum to_program { TO_PROGRAM_GO, TO_PROGRAM_C };

/* Returns whose trace a generation is of (wire/mark.h). gen may be NULL: Go. */
enum to_program to_program_of(const struct to_generation *gen);

/* Writes a text in a program's words, at most bytes - 1 of it, and a NUL. Returns its whole length, as snprintf(). */
size_t to_words_write(enum to_program program, const char *text, char *out, size_t bytes);

/* As to_words_write(), for the heading of a column: whole names first. */
size_t to_words_column(enum to_program program, const char *name, char *out, size_t bytes);

/* Rows of the table, for those who replace words elsewhere (the page). Returns false after the last one. */
struct to_words_row {
  const char *go, *c;
  bool is_column;
};
bool to_words_row(size_t i, struct to_words_row *out);

#endif
