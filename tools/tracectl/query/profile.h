/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a statement as a profile for `go tool pprof`: each row is a sample. Its column `stack` is the stack; texts are names on
 * top of it, the first one uppermost (except `place`, which describes the stack); numbers are values. A row without numbers counts
 * as one.
 *
 * Errors    of tk_row_profile_put(): TB_NOMEM, TB_BUDGET; of tk_row_profile_write(): with the reason in diag.
 */
#ifndef TK_QUERY_PROFILE_H
#define TK_QUERY_PROFILE_H

#include "tools/tracectl/profiles/pprof.h"
#include "tools/tracectl/query/tables.h"

enum { TK_ROW_PROFILE_COLUMNS = 32 };

struct tk_row_profile {
  const struct tk_traces *traces;
  struct tk_profile *profile;
  int columns, stack, place;              /* stack, place: their columns, -1: none */
  bool is_number[TK_ROW_PROFILE_COLUMNS]; /* some row had one */
  bool is_text[TK_ROW_PROFILE_COLUMNS];   /* some row had one */
  const struct tk_trace *trace;           /* of the last row */
};

/* Reads the statement's columns. Returns false if there is no `stack`, or too many others. */
bool tk_row_profile_begin(struct tk_row_profile *p, const struct tk_traces *traces,
                          sqlite3_stmt *statement);
TB_MUST tb_rc tk_row_profile_put(struct tk_row_profile *p, sqlite3_stmt *statement);
TB_MUST tb_rc tk_row_profile_write(struct tk_row_profile *p, sqlite3_stmt *statement,
                                   const char *path, struct tb_diag *diag);
void tk_row_profile_fini(struct tk_row_profile *p);

/* Finds the trace of a value of a column `stack`, and the stack's number there. Returns false if there is none. */
bool tk_stack_of(const struct tk_traces *traces, int64_t value, const struct tk_trace **out_trace,
                 uint32_t *out_number);

#endif
