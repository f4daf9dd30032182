/* SPDX-License-Identifier: Apache-2.0 */
/* Small traces that would cost a careless reader much time or memory. */
#include <criterion/criterion.h>
#include <string.h>

#include "bomb.h"
#include "online/trace/reader.h"
#include "support/patience.h"

enum { SLACK = 64 };

static void end(struct bomb *bomb) {
  bomb_end(bomb);
  cr_assert_eq(bomb->mem.bytes, 0);
}

struct outcome {
  tb_rc rc;
  struct tb_diag diag;
  size_t memory_peak;
  uint64_t events, hash;
};

static tb_rc count(void *self, const struct to_generation *gen, const struct to_event *events,
                   size_t n) {
  struct outcome *outcome = self;

  (void)gen;
  outcome->events += n;
  for (size_t i = 0; i < n; i++)
    outcome->hash = (outcome->hash ^ (uint64_t)events[i].m ^ (uint64_t)events[i].time << 20 ^
                     (uint64_t)events[i].type << 56) *
                    UINT64_C(0x9E3779B97F4A7C15);
  return TB_OK;
}

/* Reads as the collector does: in place, with a memory limit. */
static struct outcome explode(struct bomb *bomb, size_t memory_max, struct to_limits limits) {
  struct outcome outcome = { .rc = TB_OK };
  struct to_reader *reader;
  struct tb_mem mem;

  for (int i = 0; i < SLACK; i++) tb_buf_byte(&bomb->trace, 0);
  cr_assert_eq(bomb->trace.rc, TB_OK);
  tb_mem_init(&mem, tb_mem_libc, NULL, memory_max);
  tb_diag_clear(&outcome.diag);
  outcome.rc = to_reader_new(&mem, &limits, TO_READER_BYTES_STAY,
                             (struct to_event_sink){ &outcome, count }, &outcome.diag, &reader);
  cr_assert_eq(outcome.rc, TB_OK);
  bomb->trace.len -= SLACK;
  outcome.rc = to_reader_read(reader, bomb->trace.data, bomb->trace.len);
  to_reader_free(reader);
  cr_assert_eq(mem.bytes, 0);
  cr_assert_leq(mem.bytes_peak, memory_max);
  outcome.memory_peak = mem.bytes_peak;
  return outcome;
}

/* Thread n starts what thread n - 1 creates, and their clocks run backwards. */
static void chain(struct bomb *bomb, unsigned threads) {
  bomb_begin(bomb, 1000000000);
  for (unsigned n = 0; n < threads; n++) {
    bomb->thread = n;
    ADD(bomb, TW_EV_PROC_STATUS, 0, n, TW_PROC_RUNNING);
    if (n == 0)
      ADD(bomb, TW_EV_GO_STATUS, 10 + threads, 1, 0, TW_GO_RUNNING);
    else
      ADD(bomb, TW_EV_GO_START, 10 + threads - n, n + 1, 1);
    ADD(bomb, TW_EV_GO_CREATE, 0, n + 2, 0, 0);
    bomb_flush(bomb);
  }
}

Test(bombs, many_threads_that_wait_in_a_chain_are_ordered_and_use_no_fuel) {
  enum { THREADS = TT_LESS(20000, 4000) };
  struct bomb bomb;

  chain(&bomb, THREADS);
  struct outcome outcome = explode(&bomb, 64 << 20, (struct to_limits){ 0 });
  cr_assert_eq(outcome.rc, TB_OK, "%s", outcome.diag.text);
  cr_assert_eq(outcome.events, 3 * THREADS + 2, "and two Syncs");
  end(&bomb);
}

Test(bombs, parked_threads_go_on_in_the_order_in_which_trying_all_lets_them) {
  struct bomb bomb;

  chain(&bomb, 200);
  struct outcome all = explode(&bomb, SIZE_MAX, (struct to_limits){ .exact_tries = 1 << 30 });
  struct outcome parked = explode(&bomb, SIZE_MAX, (struct to_limits){ .exact_tries = 1 });
  cr_assert_eq(all.rc, TB_OK, "%s", all.diag.text);
  cr_assert_eq(parked.rc, TB_OK, "%s", parked.diag.text);
  cr_assert_eq(all.events, parked.events);
  cr_assert_eq(all.hash, parked.hash);
  end(&bomb);
}

/* A clock so coarse that each round is one tick: one thread creates a goroutine, another starts it, and a third thread has an
 * unrelated event. */
static void rounds(struct bomb *bomb, unsigned n, unsigned others) {
  bomb_begin(bomb, 10000);
  for (bomb->thread = 0; bomb->thread < 3; bomb->thread++) {
    ADD(bomb, TW_EV_PROC_STATUS, 0, (uint64_t)bomb->thread, TW_PROC_RUNNING);
    if (bomb->thread == 1) ADD(bomb, TW_EV_GO_STATUS, 0, 1, 1, TW_GO_RUNNING);
    for (unsigned i = 0; i < n; i++) {
      bomb_room(bomb);
      if (bomb->thread == 1) ADD(bomb, TW_EV_GO_CREATE, 1, i + 2, 0, 0);
      if (bomb->thread == 2) ADD(bomb, TW_EV_HEAP_ALLOC, 1, i);
      if (bomb->thread > 0) continue;
      ADD(bomb, TW_EV_GO_START, 1, i + 2, 1);
      ADD(bomb, TW_EV_GO_DESTROY, 0);
    }
    bomb_flush(bomb);
  }
  for (; bomb->thread < 3 + others; bomb->thread++) { /* like threads of cgo that come back later */
    ADD(bomb, TW_EV_PROC_STATUS, n + 1, (uint64_t)bomb->thread, TW_PROC_IDLE);
    bomb_flush(bomb);
  }
}

Test(bombs, a_coarse_clock_and_hundreds_of_threads_keep_gos_order_for_events_of_one_tick) {
  enum { ROUNDS = 6000, OTHERS = 300 };
  struct bomb bomb;

  rounds(&bomb, ROUNDS, OTHERS);
  struct outcome gos = explode(&bomb, SIZE_MAX, (struct to_limits){ .exact_tries = 1 << 30 });
  struct outcome ours = explode(&bomb, SIZE_MAX, (struct to_limits){ 0 });
  struct outcome parked = explode(&bomb, SIZE_MAX, (struct to_limits){ .exact_tries = 1 });
  cr_assert_eq(ours.rc, TB_OK, "%s", ours.diag.text);
  cr_assert_eq(ours.events, 4 * ROUNDS + OTHERS + 4 + 2);
  cr_assert_eq(gos.hash, ours.hash);
  cr_assert_neq(gos.hash, parked.hash, "their order is that of the frontier");
  end(&bomb);
}

/* A single proc moves from thread to thread, the last one first. */
Test(bombs, many_threads_that_wait_for_one_proc_wake_one_by_one) {
  enum { THREADS = TT_LESS(20000, 4000) };
  struct bomb bomb;

  bomb_begin(&bomb, 1000000000);
  for (unsigned n = 0; n < THREADS; n++) {
    bomb.thread = n;
    if (n == 0) ADD(&bomb, TW_EV_PROC_STATUS, 0, 0, TW_PROC_IDLE);
    ADD(&bomb, TW_EV_PROC_START, 10 + THREADS - n, 0, n + 1);
    ADD(&bomb, TW_EV_PROC_STOP, 1);
    bomb_flush(&bomb);
  }
  struct outcome outcome = explode(&bomb, 64 << 20, (struct to_limits){ 0 });
  cr_assert_eq(outcome.rc, TB_OK, "%s", outcome.diag.text);
  cr_assert_eq(outcome.events, 2 * THREADS + 3);
  end(&bomb);
}

/* All threads want to start the same goroutine. A status, repeated again and again, makes the start possible each time. */
Test(bombs, threads_that_want_the_same_again_and_again_use_up_fuel) {
  enum { THREADS = 4000 };
  struct bomb bomb;

  bomb_begin(&bomb, 1000000000);
  for (unsigned n = 0; n < THREADS; n++) {
    bomb.thread = n;
    ADD(&bomb, TW_EV_PROC_STATUS, 0, n, TW_PROC_RUNNING);
    ADD(&bomb, TW_EV_GO_START, 10 + THREADS - n, 1, 1);
    ADD(&bomb, TW_EV_GO_STOP, 0, 0, 0);
    bomb_flush(&bomb);
  }
  bomb.thread = THREADS;
  for (unsigned n = 0; n < THREADS; n++)
    ADD(&bomb, TW_EV_GO_STATUS, n == 0 ? 2 * THREADS : 2, 1, UINT64_MAX, TW_GO_RUNNABLE);
  bomb_flush(&bomb);
  struct outcome outcome = explode(&bomb, 64 << 20, (struct to_limits){ .fuel_tries = 1000 });
  cr_assert_eq(outcome.rc, TB_FUEL, "%s", outcome.diag.text);
  cr_assert_not_null(strstr(outcome.diag.text, "too many attempts"), "%s", outcome.diag.text);
  end(&bomb);
}

/* Tables and states that grow with a peer's data: how many bytes one entry may cost, and that
 * the limit stops them. */
enum what { STRINGS, STACKS, SAMPLES, GOROUTINES, PROCS, THREADS };

static void grow(struct bomb *bomb, enum what what, unsigned n, bool dense) {
  bomb_begin(bomb, 1000000000);
  if (what == STRINGS) ADD(bomb, TW_EV_STRINGS);
  if (what == STACKS) ADD(bomb, TW_EV_STACKS);
  if (what == SAMPLES) ADD(bomb, TW_EV_CPU_SAMPLES);
  if (what == GOROUTINES || what == PROCS) bomb->thread = 1;
  for (uint64_t i = 1; i <= n; i++) {
    uint64_t id = dense ? i : i * UINT64_C(0x9E3779B97F4A7C15) >> 8;
    switch (what) {
    case STRINGS: ADD(bomb, TW_EV_STRING, id, 0); break;
    case STACKS: ADD(bomb, TW_EV_STACK, id, 0); break;
    case SAMPLES: ADD(bomb, TW_EV_CPU_SAMPLE, id, 0, 0, 0, 0); break;
    case GOROUTINES: ADD(bomb, TW_EV_GO_STATUS, 0, id, 0, TW_GO_WAITING); break;
    case PROCS: ADD(bomb, TW_EV_PROC_STATUS, 0, id, TW_PROC_IDLE); break;
    case THREADS: bomb->thread = (int64_t)id; break;
    }
    if (what != THREADS && bomb->batch.len < TW_BATCH_BYTES_MAX - 64) continue;
    bomb_flush(bomb);
    if (what == STRINGS) ADD(bomb, TW_EV_STRINGS);
    if (what == STACKS) ADD(bomb, TW_EV_STACKS);
    if (what == SAMPLES) ADD(bomb, TW_EV_CPU_SAMPLES);
  }
  bomb_flush(bomb);
}

Test(bombs, what_an_entry_costs_is_bounded_and_charged) {
  enum { MANY = 100000, FIXED = 64 << 10 };
  static const struct {
    const char *what;
    size_t dense_max, scattered_max; /* bytes per entry, however full its table is */
  } kinds[] = {
    [STRINGS] = { "string", 32, 96 }, [STACKS] = { "stack", 56, 120 },
    [SAMPLES] = { "sample", 72, 72 }, [GOROUTINES] = { "goroutine", 64, 64 },
    [PROCS] = { "proc", 128, 128 },   [THREADS] = { "thread", 352, 352 },
  };

  for (unsigned what = 0; what < sizeof kinds / sizeof kinds[0]; what++) {
    for (int dense = 0; dense < 2; dense++) {
      struct bomb bomb;
      grow(&bomb, (enum what)what, MANY, dense);
      struct outcome outcome = explode(&bomb, SIZE_MAX, (struct to_limits){ 0 });
      cr_assert_eq(outcome.rc, TB_OK, "%s: %s", kinds[what].what, outcome.diag.text);
      size_t each = (outcome.memory_peak - FIXED) / MANY;
      cr_assert_leq(each, dense ? kinds[what].dense_max : kinds[what].scattered_max,
                    "a %s of %s ids costs %zu bytes", kinds[what].what,
                    dense ? "dense" : "scattered", each);
      outcome = explode(&bomb, outcome.memory_peak / 2, (struct to_limits){ 0 });
      cr_assert_eq(outcome.rc, TB_BUDGET, "%s: %s", kinds[what].what, tb_rc_name(outcome.rc));
      end(&bomb);
    }
  }
}

/* Nanoseconds of 2^63 and more do not fit in an integer; the frequency may not fit, either. */
Test(bombs, times_out_of_range_are_the_smallest_and_events_keep_rising) {
  static const uint64_t frequencies[] = { 0, 1, 1000, UINT64_C(1) << 63, UINT64_MAX };

  for (size_t i = 0; i < sizeof frequencies / sizeof frequencies[0]; i++) {
    struct bomb bomb;
    bomb_begin(&bomb, 1000000000);
    bomb.trace.len = TW_HEADER_BYTES;
    ADD(&bomb, TW_EV_FREQUENCY, frequencies[i]);
    bomb_flush(&bomb);
    bomb.thread = 0;
    for (uint64_t shift = 0; shift < 64; shift++)
      ADD(&bomb, TW_EV_PROC_STATUS, UINT64_C(1) << shift, shift, TW_PROC_IDLE);
    bomb_flush(&bomb);
    struct outcome outcome = explode(&bomb, SIZE_MAX, (struct to_limits){ 0 });
    cr_assert_eq(outcome.rc, TB_OK, "%s", outcome.diag.text);
    cr_assert_eq(outcome.events, 64 + 2);
    end(&bomb);
  }
}
