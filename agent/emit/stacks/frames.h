/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the chain of callers from a thread's stack: by frame pointers or, if the program was compiled without them, by unwind
 * tables (ta_emit.unwinds).
 *
 * The program wrote that memory, and code without frame pointers keeps other values in the register. So a frame is only
 * read within the bounds of the thread's stack and above the frame before; the walk ends at the first frame that is not. A
 * thread's bounds are looked up once. If code runs on another stack (a fiber's, an alternate signal stack) whose bounds
 * are not known, the result is the caller alone.
 *
 * A frame holds a return address, but the trace shows the call before it: agent/emit/generation/tables.c subtracts one from
 * every pc. So one is added to a pc that was interrupted, not called.
 *
 * Depending on how an emit function is compiled (agent/CMakeLists.txt), its frame pointer is still its caller's, or it has
 * a frame of its own: in the second case the chain contains the caller's address.
 *
 * Cost      some 2 ns a frame by pointers; some 200 ns by tables, which are read without a lock by glibc 2.35 and later.
 * Threads   any, by pointers also in a signal handler.
 */
#ifndef TA_EMIT_STACKS_FRAMES_H
#define TA_EMIT_STACKS_FRAMES_H

#include "agent/emit/core/emit.h"

/* Start of a walk that does not begin with the caller of the emit function: that of a wrapper in the preload library. */
struct ta_origin {
  const void *pc, *frame; /* NULL: begin with the caller */
};
extern __thread struct ta_origin ta_origin __attribute__((tls_model("initial-exec")));

/* Sets t->stack once, to the bounds of the calling thread's own stack. In a hook (ta_in_hook) nothing is allocated for that:
 * the bounds are the kernel's for the first stack of the process, or were learned before, or are those of the mapping. */
void ta_frames_bounds(struct ta_thread *t);
/* Gets the bounds from libc, which allocates. Call when a thread begins, outside hooks. */
void ta_frames_learn(void);

enum {
  TA_FRAMES_MAX = 128, /* most frames of a stack in a trace */
  TA_FRAMES_OURS = 6,  /* most frames of the agent on top of it */
};

/* Marks an array that is filled before it is read, so that -ftrivial-auto-var-init does not zero a kilobyte for each event. */
#if defined __has_attribute
#if __has_attribute(uninitialized)
#define TA_UNSET __attribute__((uninitialized))
#endif
#endif
#ifndef TA_UNSET
#define TA_UNSET
#endif

/* Both return the number of pcs found, 1 to max. The caller's array pcs must have max + TA_FRAMES_OURS elements. from: return
 * address of the emit function. */
unsigned ta_frames_here(const struct ta_thread *t, const void *from, uint64_t *pcs, unsigned max);
/* Reads the stack of the interrupted code; context: the signal handler's third argument. */
unsigned ta_frames_of_signal(const struct ta_thread *t, const void *context, uint64_t *pcs,
                             unsigned max);

#endif
