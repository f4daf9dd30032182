/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a text to the 1024 bytes that a trace allows, between two UTF-8 characters. */
#ifndef TA_EMIT_CORE_CUT_H
#define TA_EMIT_CORE_CUT_H

#include <stddef.h>

#include "wire/spec.h"

static inline size_t ta_cut(const char *text, size_t len) {
  if (len <= TW_STRING_BYTES_MAX) return len;
  len = TW_STRING_BYTES_MAX;
  while (len > TW_STRING_BYTES_MAX - 4 && ((unsigned char)text[len] & 0xc0) == 0x80) len--;
  return len;
}

#endif
