/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"

enum {
  TRIES = 5,
  TICK_LOG2 = 3,
  SETTLE_NS = 1000000, /* length of a measurement, repeated until it is good enough */
  SETTLES = 5,
  SETTLED_PPB = 100000,
  FINE_PPB = 1000, /* good enough to begin a new measurement, since rates change slowly */
  NEAR_PPB = 1000000,
};
_Static_assert(1 << TICK_LOG2 == TA_TICK_NS, "a tick is shifted out of nanoseconds");

/* The counter. */

#ifdef __x86_64__

/* Whether the kernel's own timekeeping uses only the counter: the names are of clock sources that do. */
static bool kernel_counts_cycles(void) {
  static const char *const names[] = { "tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n" };
  char name[64] = "";
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                O_RDONLY | O_CLOEXEC);

  if (fd < 0) return false;
  ssize_t n = read(fd, name, sizeof name - 1);
  close(fd);
  name[n > 0 ? n : 0] = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

bool ta_cycles_are_trusted(void) {
  return !atomic_load(&ta_counter_is_off) && (tb_cpu() & TB_CPU_STEADY_CYCLES) != 0 &&
         kernel_counts_cycles();
}

static uint64_t count(bool cycles) {
  return cycles ? __rdtsc() : ta_mono_ns();
}

#else

bool ta_cycles_are_trusted(void) {
  return false;
}

static uint64_t count(bool cycles) {
  (void)cycles;
  return ta_mono_ns();
}

#endif

uint64_t ta_ticks_of_kernel(const struct ta_ticks *clock) {
  return (ta_mono_ns() >> TICK_LOG2) + clock->offset;
}

/* Moments. */

static struct ta_moment moment_now(bool cycles) {
  struct ta_moment best = { 0 };
  uint64_t best_width = UINT64_MAX;

  /* An interrupt may come between the readings: take the narrowest of several tries. */
  for (int i = 0; i < TRIES; i++) {
    uint64_t before = count(cycles), mono = ta_mono_ns(), between = count(cycles);
    uint64_t wall = ta_wall_ns(), width = count(cycles) - before;
    if (width >= best_width) continue;
    best_width = width;
    best = (struct ta_moment){ before + (between - before) / 2, between - before, mono, wall };
  }
  return best;
}

struct ta_moment ta_moment_now(const struct ta_ticks *clock, const struct ta_rate *rate) {
  return moment_now(clock->factor != 0 || rate->learns);
}

uint64_t ta_ticks_at(const struct ta_ticks *clock, const struct ta_moment *moment) {
  if (clock->factor == 0) return (moment->mono_ns >> TICK_LOG2) + clock->offset;
  return ta_ticks_of_cycles(clock, moment->cycles);
}

/* Rates. */

/* Ticks a cycle, times 2^64; 0: a tick or more per cycle, or the counter has not advanced. */
static uint64_t factor_of(const struct ta_moment *from, const struct ta_moment *to) {
  uint64_t ns = to->mono_ns - from->mono_ns;

  if (to->cycles <= from->cycles) return 0;
  unsigned __int128 factor =
      ((unsigned __int128)ns << (64 - TICK_LOG2)) / (to->cycles - from->cycles);
  return factor > UINT64_MAX ? 0 : (uint64_t)factor;
}

/* The possible error of factor: both moments' uncertainty in proportion to the cycles between them. */
static uint64_t error_ppb(uint64_t factor, const struct ta_moment *from,
                          const struct ta_moment *to) {
  uint64_t ns = to->mono_ns - from->mono_ns;
  unsigned __int128 blur = (unsigned __int128)from->blur + to->blur;
  unsigned __int128 cycles = ((unsigned __int128)ns << (64 - TICK_LOG2)) / factor;

  return (uint64_t)(blur * (1000000000u / 2) / (cycles + 1));
}

/* A clock with this factor that reads `ticks` at `cycles`. */
static struct ta_ticks clock_through(uint64_t factor, uint64_t cycles, uint64_t ticks) {
  struct ta_ticks clock = { .factor = factor };

  clock.offset = ticks - ta_ticks_of_cycles(&clock, cycles);
  return clock;
}

struct ta_ticks ta_ticks_from(const struct ta_moment *from, const struct ta_moment *to) {
  uint64_t factor = factor_of(from, to);

  if (factor == 0) return (struct ta_ticks){ 0 };
  return clock_through(factor, from->cycles, from->mono_ns >> TICK_LOG2);
}

/* The program's own timer may interrupt the sleep repeatedly. */
static void sleep_until(uint64_t mono_ns) {
  const struct timespec at = { (time_t)(mono_ns / 1000000000), (long)(mono_ns % 1000000000) };

  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
}

struct ta_ticks ta_ticks_begin(bool cycles, struct ta_rate *rate) {
  struct ta_ticks clock = { 0 };

  *rate = (struct ta_rate){ .since = moment_now(cycles) };
  for (int i = 0; cycles && i < SETTLES; i++) {
    sleep_until(ta_mono_ns() + SETTLE_NS);
    struct ta_moment now = moment_now(true);
    clock = ta_ticks_from(&rate->since, &now);
    if (clock.factor == 0) break;
    rate->error_ppb = error_ppb(clock.factor, &rate->since, &now);
    if (rate->error_ppb <= SETTLED_PPB) break;
  }
  return clock;
}

struct ta_ticks ta_ticks_begin_late(bool cycles, struct ta_rate *rate) {
  *rate = (struct ta_rate){ .since = moment_now(cycles), .learns = cycles };
  return (struct ta_ticks){ 0 };
}

/* Switches to the counter after a generation by CLOCK_MONOTONIC, at the same tick. Stays with CLOCK_MONOTONIC if the
 * generation was too short to measure the rate. */
static struct ta_ticks learn(const struct ta_ticks *clock, struct ta_rate *rate,
                             const struct ta_moment *now) {
  uint64_t factor = factor_of(&rate->since, now);

  if (factor == 0) return *clock;
  uint64_t error = error_ppb(factor, &rate->since, now);
  if (error > SETTLED_PPB) return *clock;
  rate->learns = false;
  rate->error_ppb = error;
  return clock_through(factor, now->cycles, ta_ticks_at(clock, now));
}

static bool is_like(uint64_t factor, uint64_t before) {
  return factor > before - before / 8 && factor - before / 8 < before;
}

/* For two similar factors: they differ by at most a thousandth plus the older one's error. */
static bool is_near(uint64_t factor, uint64_t before, uint64_t before_error_ppb) {
  uint64_t apart = factor > before ? factor - before : before - factor;

  return (unsigned __int128)apart * 1000000000u <=
         (unsigned __int128)before * (NEAR_PPB + before_error_ppb);
}

/* Continues at `ticks`, or with CLOCK_MONOTONIC's own ticks if `ticks` is behind them. */
static struct ta_ticks kernel_from(uint64_t ticks, const struct ta_moment *now) {
  uint64_t ahead = ticks - (now->mono_ns >> TICK_LOG2);

  return (struct ta_ticks){ .offset = (int64_t)ahead > 0 ? ahead : 0 };
}

struct ta_ticks ta_ticks_next(const struct ta_ticks *clock, struct ta_rate *rate,
                              const struct ta_moment *now) {
  if (clock->factor == 0) return rate->learns ? learn(clock, rate, now) : *clock;
  uint64_t ticks = ta_ticks_at(clock, now);
  if (now->cycles <= rate->since.cycles) return kernel_from(ticks, now);
  uint64_t error = error_ppb(clock->factor, &rate->since, now);
  if (error > rate->error_ppb && error > FINE_PPB) return *clock;
  uint64_t factor = factor_of(&rate->since, now);
  if (!is_like(factor, clock->factor)) return kernel_from(ticks, now);
  if (!is_near(factor, clock->factor, rate->error_ppb) && !is_near(factor, rate->doubted, error)) {
    rate->since = *now; /* measure anew after the jump */
    rate->doubted = factor;
    return *clock;
  }
  rate->doubted = 0;
  rate->error_ppb = error;
  if (error <= FINE_PPB) rate->since = *now;
  return clock_through(factor, now->cycles, ticks);
}
