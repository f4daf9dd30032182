/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/text_pack.h"

#include <string.h>

/* Bytes of the UTF-8 character that begins here; 0: none does. NUL is not one. */
static size_t character_bytes(const unsigned char *s, size_t n) {
  static const uint32_t least[] = { 0, 1, 0x80, 0x800, 0x10000 };
  size_t len = s[0] < 0x80 ? 1 : s[0] < 0xC0 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
  uint32_t point = len == 1 ? s[0] : s[0] & (0x7Fu >> len);

  if (len == 0 || len > n || s[0] >= 0xF8) return 0;
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
    point = point << 6 | (s[i] & 0x3F);
  }
  if (point < least[len] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return 0;
  return len;
}

static bool is_utf8(struct to_string text) {
  const unsigned char *s = (const unsigned char *)text.data;
  size_t at = 0, len;

  while (at < text.len && (len = character_bytes(s + at, text.len - at)) > 0) at += len;
  return at == text.len;
}

tb_rc tp_copy_text(struct tb_arena *arena, struct to_string text, char **out) {
  static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
  const unsigned char *s = (const unsigned char *)text.data;
  size_t len;
  char *copy;

  if (is_utf8(text)) {
    TP_TAKE(arena, char, text.len, copy);
    if (text.len > 0) memcpy(copy, s, text.len);
    copy[text.len] = '\0';
    *out = copy;
    return TB_OK;
  }
  TP_TAKE(arena, char, text.len *(sizeof(replacement) - 1), copy);
  *out = copy;
  for (size_t at = 0; at < text.len; at += len) {
    len = character_bytes(s + at, text.len - at);
    memcpy(copy, len > 0 ? (const char *)s + at : replacement, len > 0 ? len : 3);
    copy += len > 0 ? len : 3;
    if (len == 0) len = 1;
  }
  *copy = '\0';
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
