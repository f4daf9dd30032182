/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that outlives its generation: frames from the innermost outwards, with the texts of its first occurrence.
 * Stacks are the same if their program counters are (if there are none: their texts). A NUL follows each text. */
#ifndef TO_SPANS_CALLSTACK_H
#define TO_SPANS_CALLSTACK_H

#include "online/event/generation.h"

struct to_callstack {
  size_t len;
  const struct to_frame *const *frames;
  size_t own; /* number of to_callstack_own()'s frame, plus one; 0: not looked up */
};

/* Numbers of stacks, for the whole stream. */
enum {
  TO_STACK_EMPTY = 0, /* no stack, or one that its generation does not define */
  TO_STACK_OTHER = 1, /* a stack above the limit */
};

/* Returns the innermost frame of the program's own code. Without own code: of a module of others, else of our agent, else of the standard
 * library, else the innermost frame (online/spans/stacks/library.h); NULL: no frame. */
const struct to_frame *to_callstack_own(const struct to_callstack *stack);
/* Returns the frame that the own frame called; NULL: none, the own frame is the innermost one. */
const struct to_frame *to_callstack_call(const struct to_callstack *stack);
/* Looks the own frame up: its number. The stack has a frame. */
size_t to_callstack_find_own(const struct to_callstack *stack);
/* Returns the function that a goroutine began with: the innermost frame of a LIFE's stack, the outermost of any other stack.
 * Returns NULL if there is no frame, or if the frame has no name; another stack of the goroutine may then have the name. */
const struct to_frame *to_callstack_entry(const struct to_callstack *stack, bool is_begin);

#endif
