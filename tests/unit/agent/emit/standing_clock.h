/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose clock stands. Whatever is linked with standing_clock.c is linked with -Wl,--wrap=clock_gettime, too. */
#ifndef TT_UNIT_EMIT_STANDING_CLOCK_H
#define TT_UNIT_EMIT_STANDING_CLOCK_H

#include "tests/unit/agent/emit/emit_scene.h"

enum { STANDING_THREADS = 3, STANDING_GENERATIONS = 3, STANDING_EVENTS = 9000 };

/* Each thread writes so many heap figures in each generation, more than a batch of them, and waits between. In the second
 * generation the clock goes back. The session has ended then. */
void standing_clock_emit(struct emitted *e);

#endif
