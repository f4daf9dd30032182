/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/scan.h"

void tk__text(sqlite3_context *out, struct to_string text) {
  sqlite3_result_text(out, text.data == NULL ? "" : text.data, (int)text.len, SQLITE_TRANSIENT);
}

void tk__name(sqlite3_context *out, const char *name) {
  sqlite3_result_text(out, name, -1, SQLITE_STATIC);
}

void tk__id(sqlite3_context *out, int64_t id) {
  if (id != TO_NONE) sqlite3_result_int64(out, id);
}

static int64_t of_trace(const struct tk_scan *scan, uint64_t number) {
  return (int64_t)scan->trace->number * TK_OF_TRACE + (int64_t)number;
}

void tk__life(const struct tk_scan *scan, sqlite3_context *out, uint64_t life) {
  if (life != 0) sqlite3_result_int64(out, of_trace(scan, life));
}

void tk__stack(const struct tk_scan *scan, sqlite3_context *out, uint32_t number) {
  if (number != TO_STACK_EMPTY) sqlite3_result_int64(out, of_trace(scan, number));
}

void tk__stream(struct tk_scan *scan, sqlite3_context *out) {
  sqlite3_result_text(out, scan->trace->place.name, -1, SQLITE_STATIC);
}
