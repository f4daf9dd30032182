/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of callers, read off a thread's stack: by the chain of frame pointers or, where the program was compiled
 * without, by its unwind tables.
 *
 * The chain is memory that the program wrote, and where it keeps other things in that register it is no chain at
 * all. So nothing is read that is not within the bounds of the stack it must lie in, above where the stack has grown
 * to, and each frame is above the one before; it ends with the first that is not. A thread's bounds are asked for
 * once. Where code runs on another stack (a fiber, an alternate signal stack) whose bounds are not known, the caller is
 * all that is known.
 *
 * A frame holds the address that its call returns to. The call itself, which the trace shows, is before it:
 * agent/emit/generation/tables.c takes one away from every pc, so one that was not called but interrupted has one
 * added.
 *
 * The emit functions are compiled so that the frame pointer is their caller's still, or else in frames of their own
 * (agent/CMakeLists.txt); which of the two it was shows in whether the chain comes by the caller.
 *
 * Cost      some 2 ns a frame by pointers; some 200 ns by tables, which are read without a lock by glibc 2.35 and later.
 * Threads   any, also in a signal handler, if it is not by tables.
 */
#ifndef TA_EMIT_STACKS_FRAMES_H
#define TA_EMIT_STACKS_FRAMES_H

#include "agent/emit/core/emit.h"

/* Where a walk begins, if not with the caller of the emit function: a wrapper of the preload library's and its
 * frame. */
struct ta_origin {
  const void *pc, *frame; /* NULL: with the caller */
};
extern __thread struct ta_origin ta_origin __attribute__((tls_model("initial-exec")));

/* The stack that this thread was given, found once. In a hook (ta_in_hook) nothing is allocated for it: the first
 * stack of the process lies where the kernel says; another one's bounds were learned before, or are those of its
 * mapping. */
void ta_frames_bounds(struct ta_thread *t);
/* Asks libc, which allocates: for a thread that has just begun. */
void ta_frames_learn(void);

enum {
  TA_FRAMES_MAX = 128, /* of a stack in a trace */
  TA_FRAMES_OURS = 6,  /* of ours on top of it, at most */
};

/* An array that is filled before it is read, however variables are compiled: a kilobyte of zeros an event is dear. */
#if defined __has_attribute
#if __has_attribute(uninitialized)
#define TA_UNSET __attribute__((uninitialized))
#endif
#endif
#ifndef TA_UNSET
#define TA_UNSET
#endif

/* from: where the emit function returns to. Each answers how many pcs it found, 1 to max; pcs has room for
 * TA_FRAMES_OURS more. */
unsigned ta_frames_here(const struct ta_thread *t, const void *from, uint64_t *pcs, unsigned max);
/* Of what the signal interrupted; context: the handler's third argument. */
unsigned ta_frames_of_signal(const struct ta_thread *t, const void *context, uint64_t *pcs,
                             unsigned max);

#endif
