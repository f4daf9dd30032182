/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that make no sense, one by one: test_misuse.c has them counted, misuse_debug has them abort. */
#ifndef TT_UNIT_EMIT_MISUSES_H
#define TT_UNIT_EMIT_MISUSES_H

#include <stddef.h>

struct misuse {
  const char *name;
  void (*commit)(void);
  const char *said; /* by a debug build */
};
extern const struct misuse misuses[];
extern const size_t misuse_count;

#endif
