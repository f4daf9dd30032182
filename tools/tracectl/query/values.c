/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tools/tracectl/query/scan.h"

void tk__number(struct tk_value *out, int64_t number) {
  *out = (struct tk_value){ .kind = TK_VALUE_NUMBER, .number = number };
}

void tk__text(struct tk_value *out, struct to_string text) {
  *out = (struct tk_value){ .kind = TK_VALUE_TEXT, .text = text };
  if (text.data == NULL) out->text = (struct to_string){ "", 0 };
}

void tk__words(struct tk_value *out, const char *text) {
  if (text != NULL) tk__text(out, (struct to_string){ text, strlen(text) });
}

void tk__name(struct tk_value *out, const char *name) {
  tk__words(out, name);
  out->stays = true;
}

void tk__fault(struct tk_value *out, enum tk_value_kind kind) {
  *out = (struct tk_value){ .kind = kind };
}

void tk__id(struct tk_value *out, int64_t id) {
  if (id != TO_NONE) tk__number(out, id);
}

static int64_t of_trace(const struct tk_scan *scan, uint64_t number) {
  return (int64_t)scan->trace->number * TK_OF_TRACE + (int64_t)number;
}

void tk__life(const struct tk_scan *scan, struct tk_value *out, uint64_t life) {
  if (life != 0) tk__number(out, of_trace(scan, life));
}

void tk__stack(const struct tk_scan *scan, struct tk_value *out, uint32_t number) {
  int64_t shown = number == TO_STACK_EMPTY ? 0 : tk_trace_number_stack(scan->trace, number);

  if (shown > 0) tk__number(out, of_trace(scan, (uint64_t)shown));
  if (shown < 0) tk__fault(out, TK_VALUE_NO_MEMORY);
}

void tk__stream(struct tk_scan *scan, struct tk_value *out) {
  tk__name(out, scan->trace->place.name);
}
