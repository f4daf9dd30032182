/* SPDX-License-Identifier: Apache-2.0 */
/* E9: the agent's clock. Tests with simulated counters: a tick is 8 ns, whatever the counter's rate does. Tests with traces: an
 * event's time is between the times that the program read around it, and events that follow each other from thread to thread
 * are in that order. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "online/event/allocfree.h"
#include "tests/unit/agent/emit/emit_reported.h"
#include "traceexperiment.h"

/* Simulated counters. */

static const uint64_t second_ns = 1000000000, born_ns = 77 * UINT64_C(1000000000) + 5;
static const uint64_t rates[] = { 1000000000, 1500000000, 2000000000, 2445194000,
                                  2999999999, 3700000001, 4400000000, 5000000000 };
enum { RATES = sizeof rates / sizeof *rates, BLUR = 60 };

struct machine {
  uint64_t hz;
  uint64_t cycles, ns; /* at one moment; from then on it counts at that rate */
};

static uint64_t cycles_at(const struct machine *m, uint64_t ns) {
  return m->cycles + (uint64_t)((unsigned __int128)(ns - m->ns) * m->hz / second_ns);
}

/* late: how many cycles after the moment the counter was read, at most half of the blur. */
static struct ta_moment moment_at(const struct machine *m, uint64_t ns, int late) {
  return (struct ta_moment){ cycles_at(m, ns) + late, BLUR, ns, ns };
}

/* Makes a session's first clock with the worst allowed measurement: over 1 ms. */
static struct ta_ticks begin_on(const struct machine *m, struct ta_rate *rate) {
  struct ta_moment from = moment_at(m, m->ns, -BLUR / 2),
                   to = moment_at(m, m->ns + 1000000, BLUR / 2);

  *rate = (struct ta_rate){ .since = from, .error_ppb = 100000 };
  return ta_ticks_from(&from, &to);
}

/* Returns the error of the clock over the second that begins at `ns`. */
static int64_t off_ns(const struct ta_ticks *clock, const struct machine *m, uint64_t ns) {
  uint64_t ticks = ta_ticks_of_cycles(clock, cycles_at(m, ns + second_ns)) -
                   ta_ticks_of_cycles(clock, cycles_at(m, ns));

  return (int64_t)(ticks * TA_TICK_NS) - (int64_t)second_ns;
}

static void expect_off(const struct ta_ticks *clock, const struct machine *m, uint64_t ns,
                       int64_t most_ns) {
  int64_t off = off_ns(clock, m, ns);

  cr_assert(off >= -most_ns && off <= most_ns, "at %lu Hz a second is off by %ld ns",
            (unsigned long)m->hz, (long)off);
}

/* A session that begins late uses CLOCK_MONOTONIC first. */
Test(emit_clock, learns_the_rate_in_its_first_generation_and_goes_on_at_the_same_tick) {
  struct machine m = { .hz = 2899999999, .cycles = 1 << 20, .ns = second_ns };
  struct ta_moment from = moment_at(&m, m.ns, -BLUR / 2),
                   soon = moment_at(&m, m.ns + 1000, BLUR / 2),
                   later = moment_at(&m, m.ns + second_ns, BLUR / 2);
  struct ta_rate rate = { .since = from, .learns = true };
  struct ta_ticks kernel = { 0 };

  struct ta_ticks clock = ta_ticks_next(&kernel, &rate, &soon);
  cr_assert_eq(clock.factor, 0, "that was too short");
  cr_assert(rate.learns);
  clock = ta_ticks_next(&kernel, &rate, &later);
  cr_assert_neq(clock.factor, 0);
  cr_assert_not(rate.learns);
  cr_assert_eq(ta_ticks_at(&clock, &later), ta_ticks_at(&kernel, &later));
  expect_off(&clock, &m, later.mono_ns, 1000);
}

Test(emit_clock, a_tick_is_eight_nanoseconds_at_any_rate) {
  /* How long the machine was up before. */
  static const uint64_t years_ns[] = { 0, UINT64_C(315576000) * 1000000000 };

  for (unsigned i = 0; i < RATES; i++) {
    for (unsigned y = 0; y < 2; y++) {
      struct machine m = { rates[i], BLUR, 0 };
      m = (struct machine){ rates[i], cycles_at(&m, years_ns[y] + born_ns), born_ns };
      struct ta_rate rate;
      struct ta_ticks clock = begin_on(&m, &rate);
      cr_assert_eq(ta_ticks_at(&clock, &rate.since), born_ns / TA_TICK_NS);
      expect_off(&clock, &m, born_ns, 1100 * (int64_t)(BLUR * second_ns / m.hz));
    }
  }
}

Test(emit_clock, generation_after_generation_it_goes_on_and_is_measured_better) {
  for (unsigned i = 0; i < RATES; i++) {
    struct machine m = { rates[i], 12345, born_ns };
    struct ta_rate rate;
    struct ta_ticks clock = begin_on(&m, &rate);
    uint64_t now_ns = born_ns;
    for (int gen = 1; gen <= 100; gen++) {
      now_ns += gen % 3 == 0 ? second_ns / 20 : second_ns; /* ended by size, or by time */
      struct ta_moment now = moment_at(&m, now_ns, gen % 2 == 0 ? BLUR / 2 : -BLUR / 2);
      struct ta_ticks next = ta_ticks_next(&clock, &rate, &now);
      cr_assert_eq(ta_ticks_at(&next, &now), ta_ticks_at(&clock, &now), "generation %d", gen);
      clock = next;
      expect_off(&clock, &m, now_ns, 1000 + TA_TICK_NS); /* a rate error of one in a million */
    }
    /* The error of the first second stays. */
    int64_t whole =
        (int64_t)(ta_ticks_of_cycles(&clock, cycles_at(&m, now_ns)) * TA_TICK_NS - now_ns);
    cr_assert(whole > -100000 && whole < 100000, "%ld", (long)whole);
  }
}

Test(emit_clock, never_goes_back_nor_overflows_in_ten_years) {
  enum { STEPS = 100000 };
  const uint64_t decade_ns = UINT64_C(315576000) * second_ns;

  for (unsigned i = 0; i < RATES; i++) {
    struct machine m = { rates[i], BLUR, born_ns };
    struct ta_rate rate;
    struct ta_ticks clock = begin_on(&m, &rate);
    struct ta_moment now = moment_at(&m, born_ns + second_ns, 0);
    clock = ta_ticks_next(&clock, &rate, &now);
    uint64_t from = cycles_at(&m, born_ns + decade_ns);
    uint64_t last = ta_ticks_of_cycles(&clock, from);
    double ns = (double)last * TA_TICK_NS, due = (double)(born_ns + decade_ns);
    cr_assert(ns > due * (1 - 1e-6) && ns < due * (1 + 1e-6));
    for (uint64_t c = 1; c <= STEPS; c++) {
      uint64_t tick = ta_ticks_of_cycles(&clock, from + c);
      cr_assert(tick == last || tick == last + 1);
      last = tick;
    }
  }
}

/* Converts as readers do: in floating point, each difference separately. */
Test(emit_clock, readers_lose_nothing_of_a_tick) {
  double ns_per_tick = 1.0 / ((double)TA_TICKS_A_SECOND / 1e9);

  cr_assert_eq(ns_per_tick, 8);
  for (uint64_t ticks = 1; ticks < UINT64_C(1) << 50; ticks = 3 * ticks + 1)
    cr_assert_eq((uint64_t)((double)ticks * ns_per_tick), 8 * ticks);
}

Test(emit_clock, follows_a_clock_that_is_slewed) {
  struct machine m = { 2445194000, 99, born_ns };
  struct ta_rate rate;
  struct ta_ticks clock = begin_on(&m, &rate);
  uint64_t now_ns = born_ns;

  for (int gen = 0; gen < 20; gen++) {
    uint64_t hz = gen / 5 % 2 == 0 ? 2445194000 : 2445194000 / 10000 * 10005; /* 500 ppm */
    m = (struct machine){ hz, cycles_at(&m, now_ns), now_ns };
    now_ns += second_ns;
    struct ta_moment now = moment_at(&m, now_ns, 0);
    struct ta_ticks next = ta_ticks_next(&clock, &rate, &now);
    cr_assert_eq(ta_ticks_at(&next, &now), ta_ticks_at(&clock, &now));
    clock = next;
    expect_off(&clock, &m, now_ns, 1000);
  }
}

/* The machine slept for that long, or its counter was set. */
Test(emit_clock, a_jump_is_no_other_rate) {
  enum { GENERATIONS = 12 };
  static const int64_t jump_ns[][GENERATIONS] = {
    { [4] = 50000000 },
    { [1] = 50000000 },
    { [4] = -50000000 },
    { [4] = 50000000, [5] = 100000000, [6] = -20000000 },
    { [3] = 100000000, [4] = 100000000, [9] = 2000000 }
  };

  for (unsigned i = 0; i < sizeof jump_ns / sizeof *jump_ns; i++) {
    struct machine m = { 2445194000, UINT64_C(1) << 40, born_ns };
    struct ta_rate rate;
    struct ta_ticks clock = begin_on(&m, &rate);
    uint64_t now_ns = born_ns;
    for (unsigned gen = 0; gen < GENERATIONS; gen++) {
      int64_t cycles = (int64_t)((__int128)jump_ns[i][gen] * (int64_t)m.hz / (int64_t)second_ns);
      m.cycles += (uint64_t)cycles;
      now_ns += second_ns;
      struct ta_moment now = moment_at(&m, now_ns, gen % 2 == 0 ? BLUR / 2 : -BLUR / 2);
      struct ta_ticks next = ta_ticks_next(&clock, &rate, &now);
      uint64_t was = ta_ticks_at(&clock, &now), is = ta_ticks_at(&next, &now);
      cr_assert_eq(is, was, "%u: generation %u", i, gen);
      clock = next;
      if (i < 4) expect_off(&clock, &m, now_ns, 1000000); /* 1000 ppm */
    }
    expect_off(&clock, &m, now_ns, 1000); /* it is measured as exactly as before */
  }
}

Test(emit_clock, another_rate_is_taken_when_it_is_measured_again) {
  struct machine m = { 2000000000, 99, born_ns };
  struct ta_rate rate;
  struct ta_ticks clock = begin_on(&m, &rate);
  uint64_t now_ns = born_ns;

  for (int gen = 0; gen < 8; gen++) {
    m = (struct machine){ gen < 4 ? 2000000000 : 2100000000, cycles_at(&m, now_ns), now_ns };
    now_ns += second_ns;
    struct ta_moment now = moment_at(&m, now_ns, 0);
    clock = ta_ticks_next(&clock, &rate, &now);
    if (gen == 4) cr_assert_gt(off_ns(&clock, &m, now_ns), 40000000);
    if (gen != 4) expect_off(&clock, &m, now_ns, 1000);
  }
}

static void interrupt(int signal) {
  (void)signal;
}

/* The program has a timer whose interval is shorter than the agent's sleep. */
Test(emit_clock, is_measured_for_long_enough_whatever_signals_come) {
  const struct itimerval fast = { { 0, 100 }, { 0, 100 } }, none = { 0 };
  struct ta_rate rate;

  signal(SIGALRM, interrupt);
  cr_assert_eq(setitimer(ITIMER_REAL, &fast, NULL), 0);
  for (int i = 0; i < 10; i++) {
    struct ta_ticks clock = ta_ticks_begin(true, &rate);
    cr_assert_neq(clock.factor, 0);
    cr_assert_geq(ta_mono_ns() - rate.since.mono_ns, 1000000);
  }
  cr_assert_eq(setitimer(ITIMER_REAL, &none, NULL), 0);
}

/* Each attempt was interrupted between the readings. */
Test(emit_clock, does_not_go_by_a_moment_that_is_blurred) {
  struct machine m = { 2000000000, BLUR, born_ns };
  struct ta_rate rate;
  struct ta_ticks clock = begin_on(&m, &rate), next;
  struct ta_moment good = moment_at(&m, born_ns + second_ns, 0);
  clock = ta_ticks_next(&clock, &rate, &good);
  struct ta_moment blurred = moment_at(&m, born_ns + 2 * second_ns, 4000000);

  blurred.blur = 10000000;
  next = ta_ticks_next(&clock, &rate, &blurred);
  cr_assert(next.factor == clock.factor && next.offset == clock.offset);
  cr_assert_eq(rate.since.mono_ns, good.mono_ns);
  good = moment_at(&m, born_ns + 3 * second_ns, 0);
  clock = ta_ticks_next(&clock, &rate, &good);
  expect_off(&clock, &m, good.mono_ns, 100);
}

/* A counter that is reset, does not advance, or changes to another machine's. */
Test(emit_clock, leaves_a_counter_that_jumps) {
  static const struct {
    uint64_t cycles, hz;
    bool ahead; /* the trace is ahead of CLOCK_MONOTONIC, and continues from there */
  } then[] = { { 0, 2000000000, false },
               { UINT64_C(1) << 40, 0, false },
               { (UINT64_C(1) << 40) + 1, 1000000000, false },
               { (UINT64_C(1) << 40) + 1, 4000000000, true },
               { UINT64_C(1) << 60, 2000000000, true } };

  for (unsigned i = 0; i < sizeof then / sizeof *then; i++) {
    struct machine m = { 2000000000, UINT64_C(1) << 40, born_ns };
    struct ta_rate rate;
    struct ta_ticks clock = begin_on(&m, &rate);
    m = (struct machine){ then[i].hz, then[i].cycles, born_ns };
    struct ta_moment now = moment_at(&m, born_ns + second_ns, 0);
    struct ta_ticks next = ta_ticks_next(&clock, &rate, &now);
    cr_expect_eq(next.factor, 0, "%u", i);
    uint64_t was = ta_ticks_at(&clock, &now), is = ta_ticks_at(&next, &now);
    cr_expect_eq(is, then[i].ahead ? was : now.mono_ns / TA_TICK_NS, "%u", i);
    cr_expect_geq((int64_t)(is - was), 0, "%u", i);
    clock = ta_ticks_next(&next, &rate, &now);
    cr_expect(clock.factor == 0 && clock.offset == next.offset, "%u", i);
  }
}

Test(emit_clock, does_not_count_by_what_is_slower_than_ticks) {
  struct machine slow = { 100000000, BLUR, born_ns }, halted = { 0, 7, born_ns };
  struct ta_rate rate;
  struct ta_ticks clock = begin_on(&slow, &rate);

  cr_assert(clock.factor == 0 && clock.offset == 0);
  clock = begin_on(&halted, &rate);
  cr_assert(clock.factor == 0 && clock.offset == 0);
}

/* Traces. */

/* Time: a batch holds some 13,000 of these events. */

enum { LOOKS = 20, BETWEEN = 4000, AT_ONCE = 16, MEASURED_NS = 20000000 };
static uint64_t before_ns[LOOKS], after_ns[LOOKS], ahead_ns[LOOKS];
static unsigned looks_seen;

/* The slack covers the snapshot of the clocks, which may be blurred if a clock is slow to read,
 * and the error of the counter's rate. */
static void look_at(const struct to_generation *gen, const struct to_event *ev) {
  struct to_clock clock;
  uint64_t i = ev->args[0];
  cr_assert(i == looks_seen && i < LOOKS);
  cr_assert(to_generation_clock(gen, &clock));
  uint64_t since = (uint64_t)(ev->time - clock.trace_ns), at = clock.mono_ns + since;
  uint64_t slack = 1000 + since / 100000;
  cr_expect(at + slack >= before_ns[i] && at <= after_ns[i] + ahead_ns[i] + slack,
            "look %u: %ld ns after the first reading, of %ld", (unsigned)i,
            (long)(at - before_ns[i]), (long)(after_ns[i] - before_ns[i]));
  looks_seen++;
}

static tb_rc take_looks(void *self, const struct to_generation *gen, const struct to_event *ev,
                        size_t n) {
  (void)self;
  for (; n > 0; ev++, n--)
    if (ev->type == TW_EV_HEAP_GOAL) look_at(gen, ev);
  return TB_OK;
}

/* Time rises by at least a tick per event. If an event takes less time to write, its time is ahead of the clock, and the next
 * event's even more. Returns the largest possible lead after these events, if the lead was `ahead` before. */
static uint64_t write_densely(uint64_t ahead) {
  for (unsigned n = 0; n < BETWEEN; n += AT_ONCE) {
    uint64_t begun = ta_mono_ns();
    for (unsigned i = 0; i < AT_ONCE; i++) ta_heap_alloc(n + i);
    uint64_t took = ta_mono_ns() - begun;
    ahead = (ahead > took ? ahead - took : 0) + AT_ONCE * TA_TICK_NS;
  }
  return ahead;
}

static void look_at_the_time(int monotonic) {
  struct ta_emit_config config = { .generation_ms = 60000, .monotonic_clock = monotonic };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 16 << 20), 0);
  ta_thread_attach(0);
  for (uint64_t end = ta_mono_ns() + MEASURED_NS; ta_mono_ns() < end;) emit_end_generation();
  for (unsigned i = 0; i < LOOKS; i++) {
    ahead_ns[i] = write_densely(i > 0 ? ahead_ns[i - 1] + TA_TICK_NS : 0);
    before_ns[i] = ta_mono_ns();
    ta_heap_goal(i);
    after_ns[i] = ta_mono_ns();
  }
  emit_end_and_read(&e, (struct to_event_sink){ NULL, take_looks });
  cr_assert_eq(looks_seen, LOOKS);
}

Test(emit_clock, a_dense_threads_event_has_the_time_it_was_written_at) {
  look_at_the_time(0);
}
Test(emit_clock, so_it_has_by_the_other_clock) {
  look_at_the_time(1);
}

/* Order. Threads make objects and pass them on; the receiver frees them. */

enum { THREADS = 4, OBJECTS = 30000, ALL = THREADS * OBJECTS, PLACES = 4, ALIGN = 8 };
static char arena[(ALL + 1) * ALIGN];
static _Atomic unsigned place[PLACES]; /* number of the object, from 1; 0: none */
static atomic_uint done;
static bool made[ALL + 1];
static unsigned frees, inverted;
static struct tb_mem allocfree_mem;
static struct to_allocfree allocfree;

static void *pass_on(void *arg) {
  unsigned first = *(unsigned *)arg * OBJECTS + 1;

  for (unsigned i = 0; i < OBJECTS; i++) {
    unsigned object = first + i;
    ta_memory_tell(TA_OBJECT_ALLOC, arena + ALIGN * object, ALIGN, 0);
    object = atomic_exchange_explicit(&place[i % PLACES], object, memory_order_acq_rel);
    if (object != 0) ta_memory_tell(TA_OBJECT_FREE, arena + ALIGN * object, 0, 0);
  }
  atomic_fetch_add(&done, 1);
  return arg;
}

static void take_object(const struct to_heap_event *heap) {
  size_t object = (heap->address - (uintptr_t)arena) / ALIGN;

  cr_assert(object > 0 && object <= ALL);
  if (heap->verb == TO_HEAP_ALLOC) {
    made[object] = true;
  } else {
    frees++;
    inverted += !made[object];
  }
}

static tb_rc take_objects(void *self, const struct to_generation *gen, const struct to_event *ev,
                          size_t n) {
  struct to_heap_event heap;

  (void)self;
  for (; n > 0; ev++, n--) {
    if (ev->type == TW_EV_SYNC && gen != NULL) TB_TRY(to_allocfree_generation(&allocfree, gen));
    if (to_allocfree_event(&allocfree, ev, &heap) && heap.thing == TO_HEAP_OBJECT)
      take_object(&heap);
  }
  return TB_OK;
}

static void pass_objects_on(bool gens) {
  struct ta_emit_config config = { .generation_ms = 60000, .allocfree = 1 };
  struct emitted e;
  pthread_t thread[THREADS];
  unsigned number[THREADS], left = 0;

  cr_assert_eq(emit_begin(&e, &config, 32 << 20), 0);
  for (unsigned i = 0; i < THREADS; i++) {
    number[i] = i;
    cr_assert_eq(pthread_create(&thread[i], NULL, pass_on, &number[i]), 0);
  }
  while (gens && atomic_load(&done) < THREADS) emit_end_generation();
  for (unsigned i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (unsigned i = 0; i < PLACES; i++) left += atomic_load(&place[i]) != 0;
  tb_mem_init(&allocfree_mem, tb_mem_libc, NULL, SIZE_MAX);
  to_allocfree_init(&allocfree, &allocfree_mem);
  emit_end_and_read(&e, (struct to_event_sink){ NULL, take_objects });
  to_allocfree_fini(&allocfree);
  cr_assert_eq(frees, ALL - left);
  cr_assert_eq(inverted, 0, "%u of %u were freed before they were allocated", inverted, frees);
}

Test(emit_clock, what_passes_from_thread_to_thread_is_told_in_that_order) {
  pass_objects_on(false);
}
Test(emit_clock, so_it_is_where_one_generation_follows_on_the_other) {
  pass_objects_on(true);
}
