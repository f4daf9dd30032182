/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of what the program emits: the processor's counter where it can be trusted, CLOCK_MONOTONIC
 * elsewhere.
 *
 * One tick is 16 cycles or 8 ns: about as long as an event takes to write, so that neither the differences
 * between events grow needlessly long nor a busy thread's time runs ahead of the clock. Ticks say nothing by
 * themselves; how many a second there are comes out of two samples, the further apart the better: 1 s gives
 * less than one part in a million.
 *
 * Threads   choose() before anybody reads; the rest from any.
 * Time      out: ticks since boot, nanoseconds on both clocks of agent/clock.h.
 */
#ifndef TA_TICKS_H
#define TA_TICKS_H

#include <stdbool.h>

#include "agent/clock.h"

#if defined __x86_64__ || defined __i386__
#include <x86intrin.h>
#endif

enum { TA_CYCLES_LOG2 = 4, TA_NS_LOG2 = 3 };

extern bool ta_ticks_count_cycles;

/* The counter must run at one rate in every state of the processor, and the kernel itself must tell the time by
 * it: then it is the same on all cores. monotonic: CLOCK_MONOTONIC in any case. */
void ta_ticks_choose(bool monotonic);

uint64_t ta_ticks_of_clock(void); /* out of line, for its stack frame */

static inline uint64_t ta_ticks_now(void) {
#if defined __x86_64__ || defined __i386__
  if (__builtin_expect(ta_ticks_count_cycles, 1)) return __rdtsc() >> TA_CYCLES_LOG2;
#endif
  return ta_ticks_of_clock();
}

/* One moment on all clocks. */
struct ta_moment {
  uint64_t ticks, mono_ns, wall_ns;
};

struct ta_moment ta_moment_now(void);
uint64_t ta_ticks_frequency(const struct ta_moment *from, const struct ta_moment *to);

#endif
