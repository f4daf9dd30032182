/* SPDX-License-Identifier: Apache-2.0 */
/* Clock of emitted events, in ticks of 8 ns since boot: the processor's counter if it can be trusted, else
 * CLOCK_MONOTONIC.
 *
 * Readers, Go's and ours, convert each difference between two events of a batch to nanoseconds separately and truncate.
 * A tick is a whole number of nanoseconds, so nothing is truncated: an event's time does not depend on the events before
 * it, and events of two threads keep their order. 8 ns is about as long as an event takes to write, so that
 * differences stay short, and a busy thread's time does not run ahead of the clock.
 *
 * So all sessions have one frequency, and ticks per cycle are measured: over a millisecond when a session begins, which
 * is accurate to 100 ppm for the first generation if the machine permits (begin() tries for up to five milliseconds),
 * and again whenever two moments further apart give a better value. A clock is valid for one generation; the next
 * continues at the tick where it ended.
 *
 * A generation in which the counter jumped against CLOCK_MONOTONIC, because the machine slept or the counter was set,
 * looks like one with another rate. So a rate that differs by more than a thousandth is used only after the next
 * generation has confirmed it; until then the old rate stays. The times of the generation with the jump contain it.
 *
 * Threads   begin() and next() on one at a time; a clock that does not change may be read by any.
 * Cost      now: reading the counter and a multiplication; with CLOCK_MONOTONIC some 20 ns more.
 */
#ifndef TA_EMIT_CORE_TICKS_H
#define TA_EMIT_CORE_TICKS_H

#include <stdbool.h>

#include "agent/host/clock.h"
#include "base/result.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

enum { TA_TICK_NS = 8, TA_TICKS_A_SECOND = 1000000000 / TA_TICK_NS };

/* Ticks are the upper half of cycles * factor, plus offset; sums may wrap at 2^64. The counter itself wraps after a
 * hundred years at 5 GHz. factor 0: CLOCK_MONOTONIC plus offset. */
struct ta_ticks {
  uint64_t factor, offset;
};

static inline uint64_t ta_ticks_of_cycles(const struct ta_ticks *clock, uint64_t cycles) {
  return (uint64_t)((unsigned __int128)cycles * clock->factor >> 64) + clock->offset;
}

uint64_t ta_ticks_of_kernel(const struct ta_ticks *clock); /* out of line, for its stack frame */

/* The processor may read the counter some 100 ns before earlier loads complete. If sequence numbers order this event
 * after another thread's, that does not matter, and a fence would cost 14 ns of a fiber's switch. If only time orders
 * them, call ta_ticks_fence() first. */
static inline uint64_t ta_ticks_now(const struct ta_ticks *clock) {
#ifdef __x86_64__
  if (TB_LIKELY(clock->factor != 0)) return ta_ticks_of_cycles(clock, __rdtsc());
#endif
  return ta_ticks_of_kernel(clock);
}

/* Makes the next reading wait for all earlier loads. CLOCK_MONOTONIC's readings always do. */
static inline void ta_ticks_fence(void) {
#ifdef __x86_64__
  _mm_lfence();
#endif
}

/* One moment on all clocks: cycles may be off by blur / 2. */
struct ta_moment {
  uint64_t cycles, blur, mono_ns, wall_ns;
};

struct ta_rate;
struct ta_moment ta_moment_now(const struct ta_ticks *clock, const struct ta_rate *rate);
uint64_t ta_ticks_at(const struct ta_ticks *clock, const struct ta_moment *moment);

/* Measurement of the counter's rate: when it began, and the possible error of the rate in use. */
struct ta_rate {
  struct ta_moment since;
  uint64_t error_ppb;
  uint64_t doubted; /* the last measured factor, if it is not confirmed yet; 0: none */
  bool learns; /* CLOCK_MONOTONIC is in use until the counter has been measured for a generation */
};

/* The counter must run at one rate in every state of the processor, and the kernel must use it for its own
 * timekeeping: then it is the same on all cores. */
bool ta_cycles_are_trusted(void);

/* Makes a session's first clock. If it counts cycles, sleeps for one to five milliseconds despite signals. */
struct ta_ticks ta_ticks_begin(bool cycles, struct ta_rate *rate);

/* As begin() without sleeping: the first generation uses CLOCK_MONOTONIC, during which the counter is measured. */
struct ta_ticks ta_ticks_begin_late(bool cycles, struct ta_rate *rate);

/* Makes a clock with the rate measured between `from` and `to` that reads CLOCK_MONOTONIC's ticks at `from`. factor 0:
 * no rate could be measured. */
struct ta_ticks ta_ticks_from(const struct ta_moment *from, const struct ta_moment *to);

/* Makes the next generation's clock, which begins now. It uses CLOCK_MONOTONIC if the counter jumped back or its rate
 * changed by more than an eighth: the machine has slept, or was migrated. */
struct ta_ticks ta_ticks_next(const struct ta_ticks *clock, struct ta_rate *rate,
                              const struct ta_moment *now);

#endif
