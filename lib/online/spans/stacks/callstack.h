/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that outlives its generation: frames from the innermost outwards, as the stack was when it was first seen.
 * Two stacks are one if their program counters are equal (where there is none: their text). A NUL follows each text. */
#ifndef TO_SPANS_CALLSTACK_H
#define TO_SPANS_CALLSTACK_H

#include "online/event/generation.h"

struct to_callstack {
  size_t len;
  const struct to_frame *const *frames;
};

/* Stacks have numbers for the whole stream. */
enum {
  TO_STACK_EMPTY = 0, /* no stack, or one the generation does not have */
  TO_STACK_OTHER = 1, /* one that is not kept */
};

/* The innermost frame that is the program's own: not of Go's runtime or the C library, nor of what stands between it and a lock or a call.
 * The innermost of all where there is none; NULL: there is no frame. */
const struct to_frame *to_callstack_own(const struct to_callstack *stack);
/* The function that a goroutine began in: of what it begins with (a LIFE's stack) the innermost frame, of any other stack of its the
 * outermost one. NULL: there is no frame, or it has no name: another stack of the goroutine may have one. */
const struct to_frame *to_callstack_entry(const struct to_callstack *stack, bool is_begin);

#endif
