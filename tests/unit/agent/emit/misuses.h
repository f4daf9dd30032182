/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid calls. test_misuse.c checks that each is counted, misuse_debug that each aborts. */
#ifndef TT_UNIT_EMIT_MISUSES_H
#define TT_UNIT_EMIT_MISUSES_H

#include <stddef.h>

struct misuse {
  const char *name;
  void (*commit)(void);
  const char *said; /* message of a debug build */
};
extern const struct misuse misuses[];
extern const size_t misuse_count;

#endif
