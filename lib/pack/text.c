/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/text.h"

#include <string.h>

#include "proto/utf8.h"

static bool is_utf8(struct to_string text) {
  return tp_utf8_whole(text.data, text.len) == text.len;
}

tb_rc tp_copy_text(struct tb_arena *arena, struct to_string text, char **out) {
  size_t n = text.len;
  char *copy;

  if (is_utf8(text)) {
    TP_TAKE(arena, char, n, copy);
    if (n > 0) memcpy(copy, text.data, n);
  } else {
    TP_TAKE(arena, char, 3 * n, copy);
    n = tp_utf8_repair(text.data, n, copy);
  }
  copy[n] = '\0';
  *out = copy;
  return TB_OK;
}

tb_rc tp_take_text(struct tb_arena *arena, struct to_string text, char **out) {
  if (!is_utf8(text)) return tp_copy_text(arena, text, out);
  *out = (char *)(uintptr_t)text.data;
  return TB_OK;
}

tb_rc tp_take_stack(struct tb_arena *arena, const struct to_callstack *stack, size_t *out_n,
                    Tracecollect__V1__Frame ***out) {
  size_t n = stack == NULL ? 0 : stack->len;
  Tracecollect__V1__Frame *frames, **list;

  TP_TAKE(arena, Tracecollect__V1__Frame, n, frames);
  TP_TAKE(arena, Tracecollect__V1__Frame *, n, list);
  for (size_t i = 0; i < n; i++) {
    const struct to_frame *frame = stack->frames[i];
    list[i] = &frames[i];
    tracecollect__v1__frame__init(&frames[i]);
    TB_TRY(tp_take_text(arena, frame->function, &frames[i].function));
    TB_TRY(tp_take_text(arena, frame->file, &frames[i].file));
    frames[i].line = frame->line;
    frames[i].pc = frame->pc;
  }
  *out_n = n;
  *out = list;
  return TB_OK;
}
