/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code a frame is (online/spans/stacks/library.def, and where its source is).
 *
 * The source tells a module of others: it is in Go's module cache or, with -trimpath, below a path with a version
 * (github.com/lib/pq@v1.10.9/conn.go), or in a folder vendor. A module that a `replace` or a workspace takes from a
 * folder is the program's own: it is being worked on. */
#ifndef TO_SPANS_LIBRARY_H
#define TO_SPANS_LIBRARY_H

#include "online/event/generation.h"

/* In rising order: the place of a stack is its innermost frame of the highest. */
enum to_code {
  TO_CODE_PLUMBING, /* the runtime, locks, calls; the C library; a frame without a name */
  TO_CODE_LIBRARY,  /* the rest of Go's standard library */
  TO_CODE_AGENT,    /* our agent for Go */
  TO_CODE_MODULE,   /* a module of others */
  TO_CODE_PROGRAM,
};

enum to_code to_code_of(const struct to_frame *frame);
/* Returns the line to show after the function's name; 0: none. The source of our preload library says nothing about the program. */
uint64_t to_library_line(const struct to_frame *frame);

/* Returns true for a function of Go's standard library. */
bool to_library_is_go(struct to_string function);
/* Returns true for a function of the standard library or of the C library. */
bool to_library_has(struct to_string function);

#endif
