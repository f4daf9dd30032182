/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of programs: each does one thing in all its generations, and makes a trace that every reader accepts. The unit
 * tests read them with our reader, the end-to-end tests with Go's (emit_shapes_main.c). */
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
