/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may do, each thing in all its generations: every one of these makes a trace that every reader takes.
 * The unit tests show them to our reader, the end-to-end tests to Go's (emit_shapes_main.c). */
#ifndef TT_UNIT_EMIT_EMIT_SHAPES_H
#define TT_UNIT_EMIT_EMIT_SHAPES_H

#include <stddef.h>

struct emit_shape {
  const char *name;
  void (*run)(void); /* in a session, on any thread */
};

extern const struct emit_shape emit_shapes[];
extern const size_t emit_shape_count;

#endif
