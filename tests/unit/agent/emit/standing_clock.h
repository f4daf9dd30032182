/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose clock does not advance. Programs with standing_clock.c must be linked with -Wl,--wrap=clock_gettime. */
#ifndef TT_UNIT_EMIT_STANDING_CLOCK_H
#define TT_UNIT_EMIT_STANDING_CLOCK_H

#include "tests/unit/agent/emit/emit_scene.h"

enum { STANDING_THREADS = 3, STANDING_GENERATIONS = 3, STANDING_EVENTS = 9000 };

/* Runs a whole session. In each generation each thread writes more heap figures than fit into a batch, then waits. In the
 * second generation the clock goes back. */
void standing_clock_emit(struct emitted *e);

#endif
