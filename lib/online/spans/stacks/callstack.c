/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/stacks/callstack.h"

#include "online/spans/stacks/library.h"

size_t to_callstack_find_own(const struct to_callstack *stack) {
  enum to_code highest = TO_CODE_PLUMBING;
  size_t own = 0;

  for (size_t i = 0; i < stack->len && highest < TO_CODE_PROGRAM; i++) {
    enum to_code code = to_code_of(stack->frames[i]);
    if (code <= highest) continue;
    highest = code;
    own = i;
  }
  return own;
}

static size_t own_of(const struct to_callstack *stack) {
  return stack->own > 0 ? stack->own - 1 : to_callstack_find_own(stack);
}

const struct to_frame *to_callstack_own(const struct to_callstack *stack) {
  return stack == NULL || stack->len == 0 ? NULL : stack->frames[own_of(stack)];
}

const struct to_frame *to_callstack_call(const struct to_callstack *stack) {
  size_t own = stack == NULL || stack->len == 0 ? 0 : own_of(stack);

  return own == 0 ? NULL : stack->frames[own - 1];
}

const struct to_frame *to_callstack_entry(const struct to_callstack *stack, bool is_begin) {
  if (stack == NULL || stack->len == 0) return NULL;
  const struct to_frame *frame = stack->frames[is_begin ? 0 : stack->len - 1];
  return frame->function.len == 0 ? NULL : frame;
}
