/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/stacks/callstack.h"

#include <string.h>

static bool is_own(const struct to_frame *frame) {
  /* A function without a name, such as libc.so.6+0x1234, has its file's name. */
  static const char *const others[] = { "runtime.", "syscall.", "internal/",
                                        "runtime/", "sync.",    "pthread_",
                                        "__",       "libc.so",  "libtraceagent-preload.so+" };

  if (frame->function.len == 0) return false;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    size_t n = strlen(others[i]);
    if (frame->function.len >= n && memcmp(frame->function.data, others[i], n) == 0) return false;
  }
  return true;
}

const struct to_frame *to_callstack_own(const struct to_callstack *stack) {
  if (stack == NULL || stack->len == 0) return NULL;
  for (size_t i = 0; i < stack->len; i++)
    if (is_own(stack->frames[i])) return stack->frames[i];
  return stack->frames[0];
}

const struct to_frame *to_callstack_entry(const struct to_callstack *stack, bool is_begin) {
  if (stack == NULL || stack->len == 0) return NULL;
  const struct to_frame *frame = stack->frames[is_begin ? 0 : stack->len - 1];
  return frame->function.len == 0 ? NULL : frame;
}
