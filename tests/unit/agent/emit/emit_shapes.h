/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of programs. Each shape does one kind of thing in all its generations, and every reader must accept its trace. The
 * unit tests read them with our reader, the end-to-end tests with Go's (emit_shapes_main.c). */
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
