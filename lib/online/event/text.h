/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a trace compared with those of the code. */
#ifndef TO_EVENT_TEXT_H
#define TO_EVENT_TEXT_H

#include <string.h>

#include "online/event/generation.h"

static inline bool to_string_is(struct to_string text, const char *other) {
  return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

#endif
