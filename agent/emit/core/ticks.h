/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of what the program emits, in ticks of 8 ns since boot: by the processor's counter where it can be
 * trusted, by CLOCK_MONOTONIC elsewhere.
 *
 * Readers, Go's and ours, turn each difference between two events of a batch into nanoseconds by itself and cut off
 * what is left over. Of a whole number of nanoseconds nothing is: an event has the same time by whatever events
 * stand before it, and two threads' events stand to each other as they happened. And 8 ns is about as long as an
 * event takes to write, so that differences do not grow needlessly long, nor does a busy thread's time run ahead of
 * the clock.
 *
 * So all sessions have one frequency, and the measured value is how much of a tick a cycle is: over a
 * millisecond when a session begins, which is right to 100 ppm for the first generation if the machine lets
 * it (begin() tries for up to five milliseconds), and again whenever two moments that lie further apart give
 * a better value. A clock is good for
 * one generation; the next goes on at the tick where it ended.
 *
 * A generation in which the counter jumped against CLOCK_MONOTONIC, because the machine slept or the counter was
 * set, looks like one of another rate. So what differs by more than a thousandth is not believed before the next
 * generation has measured it again: until then the old rate stays. The generation itself that saw the jump has it in
 * its times.
 *
 * Threads   begin() and next() on one at a time; a clock that stays as it is may be read by any.
 * Cost      now: the counter's reading and a multiplication; by CLOCK_MONOTONIC some 20 ns more.
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

/* Ticks are the upper half of cycles * factor, and offset; sums may pass 2^64 and come round. The counter itself
 * does so after a hundred years at 5 GHz. factor 0: CLOCK_MONOTONIC, and offset. */
struct ta_ticks {
  uint64_t factor, offset;
};

static inline uint64_t ta_ticks_of_cycles(const struct ta_ticks *clock, uint64_t cycles) {
  return (uint64_t)((unsigned __int128)cycles * clock->factor >> 64) + clock->offset;
}

uint64_t ta_ticks_of_kernel(const struct ta_ticks *clock); /* out of line, for its stack frame */

/* May be read ahead of what the processor has still to load, by some 100 ns. Where a thread goes on from what
 * another did that is no matter, if numbers order the two: a fence there is 14 ns of a fiber's switch. If only time
 * does, ta_ticks_fence() stands before it. */
static inline uint64_t ta_ticks_now(const struct ta_ticks *clock) {
#ifdef __x86_64__
  if (TB_LIKELY(clock->factor != 0)) return ta_ticks_of_cycles(clock, __rdtsc());
#endif
  return ta_ticks_of_kernel(clock);
}

/* The next reading comes after all that was loaded before. CLOCK_MONOTONIC's does in any case. */
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

/* The knowledge of the counter's rate: since when it is measured, and how far what is in use may be off. */
struct ta_rate {
  struct ta_moment since;
  uint64_t error_ppb;
  uint64_t doubted; /* the factor that was measured last and is not believed yet; 0: none */
  bool learns; /* CLOCK_MONOTONIC is in use until the counter has been measured for a generation */
};

/* The counter must run at one rate in every state of the processor, and the kernel must use it for its own
 * timekeeping: then it is the same on all cores. */
bool ta_cycles_are_trusted(void);

/* A session's first clock, and the moment it begins at. Sleeps for one to five milliseconds, whatever
 * signals come, if it is to count cycles. */
struct ta_ticks ta_ticks_begin(bool cycles, struct ta_rate *rate);

/* The same without sleeping: the first generation goes by CLOCK_MONOTONIC, and next() has measured the counter. */
struct ta_ticks ta_ticks_begin_late(bool cycles, struct ta_rate *rate);

/* A clock of cycles that were as many as from `from` to `to`, and shows CLOCK_MONOTONIC's ticks at `from`. factor 0:
 * these are none to count by. */
struct ta_ticks ta_ticks_from(const struct ta_moment *from, const struct ta_moment *to);

/* The next generation's clock, which begins now. It counts by CLOCK_MONOTONIC if the counter has jumped, or its rate
 * has by more than an eighth: the machine has slept, or been moved to another. */
struct ta_ticks ta_ticks_next(const struct ta_ticks *clock, struct ta_rate *rate,
                              const struct ta_moment *now);

#endif
