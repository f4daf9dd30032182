/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/profile.h"

#include <string.h>

bool tk_stack_of(const struct tk_traces *traces, int64_t value, const struct tk_trace **out_trace,
                 uint32_t *out_number) {
  if (value <= 0 || (size_t)(value / TK_OF_TRACE) >= traces->n) return false;
  *out_trace = &traces->trace[value / TK_OF_TRACE];
  return tk_trace_find_stack(&traces->trace[value / TK_OF_TRACE], value % TK_OF_TRACE, out_number);
}

bool tk_row_profile_begin(struct tk_row_profile *p, const struct tk_traces *traces,
                          sqlite3_stmt *statement) {
  *p = (struct tk_row_profile){
    .traces = traces, .columns = sqlite3_column_count(statement), .stack = -1, .place = -1
  };
  if (p->columns > TK_ROW_PROFILE_COLUMNS) return false;
  for (int i = p->columns; i-- > 0;) {
    if (strcmp(sqlite3_column_name(statement, i), "stack") == 0) p->stack = i;
    if (strcmp(sqlite3_column_name(statement, i), "place") == 0) p->place = i;
  }
  return p->stack >= 0;
}

static const struct to_callstack *stack_of(struct tk_row_profile *p, sqlite3_stmt *statement) {
  const struct tk_trace *trace;
  uint32_t number;

  if (!tk_stack_of(p->traces, sqlite3_column_int64(statement, p->stack), &trace, &number))
    return NULL;
  if (trace != p->trace) tk_profile_program(p->profile);
  p->trace = trace;
  return tk_trace_stack(trace, number);
}

tb_rc tk_row_profile_put(struct tk_row_profile *p, sqlite3_stmt *statement) {
  const char *above[TK_ROW_PROFILE_COLUMNS];
  int64_t value[TK_ROW_PROFILE_COLUMNS] = { 0 };
  size_t n_above = 0;

  if (p->profile == NULL) TB_TRY(tk_profile_new(&p->profile));
  for (int i = 0; i < p->columns; i++) {
    int type = sqlite3_column_type(statement, i);
    if (i == p->stack || i == p->place || type == SQLITE_NULL) continue;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
      p->is_number[i] = true;
      value[i] = sqlite3_column_int64(statement, i);
      continue;
    }
    const char *text = (const char *)sqlite3_column_text(statement, i);
    if (text == NULL) return TB_NOMEM;
    p->is_text[i] = true;
    if (text[0] != '\0') above[n_above++] = text;
  }
  return tk_profile_sample(p->profile, stack_of(p, statement), above, n_above, value,
                           (size_t)p->columns);
}

tb_rc tk_row_profile_write(struct tk_row_profile *p, sqlite3_stmt *statement, const char *path,
                           struct tb_diag *diag) {
  const char *name[TK_ROW_PROFILE_COLUMNS] = { NULL };

  if (p->profile == NULL) TB_TRY(tk_profile_new(&p->profile)); /* no rows make an empty one */
  for (int i = 0; i < p->columns; i++)
    if (p->is_number[i] && !p->is_text[i]) name[i] = sqlite3_column_name(statement, i);
  return tk_profile_write(p->profile, path, name, (size_t)p->columns, diag);
}

void tk_row_profile_fini(struct tk_row_profile *p) {
  tk_profile_free(p->profile);
}
