/* SPDX-License-Identifier: Apache-2.0 */
/* Small traces whose cost in a careless reader or analysis grows with the events before: none
 * may cost more than a second of CPU time for each megabyte. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bomb.h"
#include "online/analysis/analysis.h"
#include "online/trace/reader.h"
#include "support/patience.h"

#ifdef TC_SANITIZED
enum { SECONDS_A_MB = 1000, SMALLER = 64 }; /* the cost with these says nothing */
#else
enum { SECONDS_A_MB = 1, SMALLER = 1 };
#endif
enum { MB = 1 << 20, LONG = MB / SMALLER, FAST = 1000000000, SECOND = 1 };

/* Works as the collector does, but without sockets: after any fault it continues with the next generation. */
struct work {
  struct tb_mem mem;
  struct to_analyses *analyses;
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_buf out;
};

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n) {
  struct work *work = self;

  return to_analyses_events(work->analyses, gen, events, n);
}

static void report_all(struct work *work) {
  const struct to_report *report;

  for (unsigned kind = 0; kind < TO_ANALYSIS_KINDS; kind++)
    for (unsigned window = 0; window < TO_WINDOWS; window++)
      cr_assert_eq(to_analyses_report(work->analyses, (enum to_analysis_kind)kind,
                                      (enum to_window)window, 256, &report),
                   TB_OK);
}

static double cpu_seconds(void) {
  struct timespec t;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  const struct work *work = self;
  return to_analyses_generation_ends(work->analyses, gen);
}

static void start(struct work *work) {
  const struct to_analysis_config config = { .blocked_after_ns = 1, .stacks_max = 4096 };

  *work = (struct work){ 0 };
  tb_mem_init(&work->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&work->diag);
  cr_assert_eq(to_analyses_new(&work->mem, &config, &work->analyses), TB_OK);
  cr_assert_eq(to_reader_new(&work->mem, NULL, 0, (struct to_event_sink){ work, take }, &work->diag,
                             &work->reader),
               TB_OK);
  to_reader_on_end(work->reader, work, end_generation);
}

static void stop(struct work *work) {
  to_reader_free(work->reader);
  to_analyses_free(work->analyses);
  cr_assert_eq(work->mem.bytes, 0);
}

static void check_cost(const char *what, double seconds, size_t bytes) {
  double a_mb = seconds / ((double)bytes / MB);

  printf("%s: %.2f s a MB, %zu bytes\n", what, a_mb, bytes);
  cr_expect_leq(a_mb, SECONDS_A_MB, "%s: %.2f s a MB", what, a_mb);
}

/* Reads the bomb as one trace, and expects this result. */
static void explode(const char *what, struct bomb *bomb, tb_rc expected) {
  struct work work;
  double begun = cpu_seconds();

  cr_assert_eq(bomb->trace.rc, TB_OK);
  start(&work);
  tb_rc rc = to_reader_read(work.reader, bomb->trace.data, bomb->trace.len);
  report_all(&work);
  double seconds = cpu_seconds() - begun;
  cr_expect_eq(rc, expected, "%s: %s %s", what, tb_rc_name(rc), work.diag.text);
  check_cost(what, seconds, bomb->trace.len);
  stop(&work);
  bomb_end(bomb);
}

static void known(struct bomb *bomb, int64_t thread) {
  bomb->thread = thread;
  ADD(bomb, TW_EV_PROC_STATUS, 1, (uint64_t)thread, TW_PROC_RUNNING);
  ADD(bomb, TW_EV_GO_STATUS, 1, 1 + (uint64_t)thread, (uint64_t)thread, TW_GO_RUNNING);
}

/* ---- windows ---- */

static void call(struct bomb *bomb, uint64_t before, uint64_t length, uint64_t p_seq) {
  bomb_room(bomb);
  ADD(bomb, TW_EV_GO_SYSCALL_BEGIN, before, p_seq, 0);
  ADD(bomb, TW_EV_GO_SYSCALL_END, length);
}

Test(bomb_costs, a_slot_a_call_with_every_page_in_use) {
  struct bomb bomb;
  uint64_t n = 0;

  bomb_begin(&bomb, SECOND);
  known(&bomb, 0);
  for (unsigned shift = 0; shift < 29; shift++)
    for (uint64_t quarter = 4; quarter < 8; quarter++)
      call(&bomb, 1, (quarter << shift) / 4 + 1, ++n);
  while (bomb.trace.len < LONG) call(&bomb, 1, 1, ++n);
  bomb_flush(&bomb);
  explode("calls", &bomb, TB_OK);
}

/* First as many lengths as the pool keeps, and then one call per slot. */
Test(bomb_costs, a_slot_a_call_with_a_full_pool) {
  struct bomb bomb;
  uint64_t n = 0;

  bomb_begin(&bomb, FAST);
  known(&bomb, 0);
  for (uint64_t shift = 0; shift < 18; shift++)
    for (uint64_t digits = 1024; digits < 2048; digits++) call(&bomb, 1, digits << shift, ++n);
  while (bomb.trace.len < LONG) call(&bomb, FAST, 1, ++n);
  bomb_flush(&bomb);
  explode("lengths", &bomb, TB_OK);
}

static void strings(struct bomb *bomb, unsigned n, size_t len) {
  char text[TW_STRING_BYTES_MAX];

  memset(text, 'x', sizeof text);
  bomb->thread = BOMB_NO_THREAD;
  for (unsigned i = 0; i < n; i++) {
    if (bomb->batch.len > TW_BATCH_BYTES_MAX - len - 32) bomb_flush(bomb);
    if (bomb->batch.len == 0) ADD(bomb, TW_EV_STRINGS);
    char digits[16];
    int width = snprintf(digits, sizeof digits, "%08u", i);
    memcpy(text + len - (size_t)width, digits, (size_t)width);
    bomb_string(bomb, i + 1, text, len);
  }
  bomb_flush(bomb);
}

static void stop_world(struct bomb *bomb, uint64_t before, uint64_t length, uint64_t reason) {
  bomb_room(bomb);
  ADD(bomb, TW_EV_STW_BEGIN, before, reason, 0);
  ADD(bomb, TW_EV_STW_END, length);
}

/* Fills all histograms, each with as many pages as the window's time allows. */
Test(bomb_costs, a_slot_a_stop_with_every_histogram_full) {
  enum { REASONS = TT_LESS(48, 8), SHIFTS = 24 };
  struct bomb bomb;

  bomb_begin(&bomb, SECOND);
  strings(&bomb, REASONS, 8);
  known(&bomb, 0);
  for (unsigned shift = 0; shift < SHIFTS; shift++)
    for (uint64_t quarter = 4; quarter < 8; quarter++)
      for (uint64_t reason = 1; reason <= REASONS; reason++)
        stop_world(&bomb, 1, (quarter << shift) / 4 + 1, reason);
  for (uint64_t n = 0; bomb.trace.len < 2 * LONG; n++) stop_world(&bomb, 1, 1, n % REASONS + 1);
  bomb_flush(&bomb);
  explode("stops", &bomb, TB_OK);
}

/* There are many stoppers, so old rows are replaced all the time. */
Test(bomb_costs, a_slot_a_stop_each_by_another_goroutine) {
  enum { MANY = 60000 / SMALLER };
  struct bomb bomb;

  bomb_begin(&bomb, SECOND);
  strings(&bomb, 1, 8);
  known(&bomb, 0);
  for (uint64_t g = 10; g < 10 + MANY; g++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_GO_CREATE, 0, g, 0, 0);
  }
  for (uint64_t g = 10; g < 10 + MANY; g++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_GO_STOP, 0, 0, 0);
    ADD(&bomb, TW_EV_GO_START, 0, g, 1);
    ADD(&bomb, TW_EV_STW_BEGIN, 0, 1, 0);
    ADD(&bomb, TW_EV_STW_END, 1);
  }
  bomb_flush(&bomb);
  explode("stoppers", &bomb, TB_OK);
}

/* ---- waits ---- */

/* A goroutine is created, waits for `length`, and ends. Meanwhile its creator waits, too, but does not end. */
static void wait_for_proc(struct bomb *bomb, uint64_t before, uint64_t length, uint64_t stack,
                          uint64_t waker, uint64_t seq) {
  bomb_room(bomb);
  ADD(bomb, TW_EV_GO_CREATE, before, 1000 + seq, stack, waker);
  ADD(bomb, TW_EV_GO_STOP, 0, 0, 0);
  ADD(bomb, TW_EV_GO_START, length, 1000 + seq, 1);
  ADD(bomb, TW_EV_GO_DESTROY, 0);
  ADD(bomb, TW_EV_GO_START, 0, 1, seq);
}

static void small_stacks(struct bomb *bomb, uint64_t n) {
  bomb->thread = BOMB_NO_THREAD;
  for (uint64_t stack = 1; stack <= n; stack++) {
    bomb_room(bomb);
    if (bomb->batch.len == 0) ADD(bomb, TW_EV_STACKS);
    const uint64_t frame[] = { stack, 0, 0, stack };
    ADD(bomb, TW_EV_STACK, stack, 1);
    bomb_numbers(bomb, frame, 4);
  }
  bomb_flush(bomb);
}

/* Each wait is by a new goroutine, and has a pair of stacks that no other wait has. */
static void wait_bomb(const char *what, uint64_t frequency, uint64_t before, uint64_t longest) {
  enum { STACKS = 4000 };
  struct bomb bomb;

  bomb_begin(&bomb, frequency);
  small_stacks(&bomb, STACKS);
  known(&bomb, 0);
  for (uint64_t n = 1; bomb.trace.len < 2 * LONG; n++)
    wait_for_proc(&bomb, before, longest > n ? longest - n : 1, 1 + n % STACKS,
                  1 + (n / STACKS + n * 7) % STACKS, n);
  bomb_flush(&bomb);
  explode(what, &bomb, TB_OK);
}

Test(bomb_costs, waits_with_ever_new_pairs_of_stacks) {
  wait_bomb("pairs of stacks", FAST, 1, 1);
}

Test(bomb_costs, a_slot_a_wait) {
  wait_bomb("waits", SECOND, 1, 1);
}

/* No wait is longer than an earlier one, so all stay in the list of longest waits as long as possible. */
Test(bomb_costs, waits_that_get_ever_shorter) {
  wait_bomb("shorter waits", FAST, FAST, 1000000);
}

Test(bomb_costs, many_waits_a_slot_that_get_ever_shorter) {
  wait_bomb("shorter waits", FAST, FAST / 50, 1000000);
}

/* ---- reasons ---- */

static void open_stops(bool end) {
  enum { REASONS = 100000 };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  strings(&bomb, REASONS, 8);
  known(&bomb, 0);
  for (uint64_t reason = 1; reason <= REASONS; reason++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_STW_BEGIN, 1, reason, 0);
    if (reason % 4 == 0) ADD(&bomb, TW_EV_GC_MARK_ASSIST_BEGIN, 1, 0);
    if (reason % 4 == 0) ADD(&bomb, TW_EV_GC_MARK_ASSIST_END, 1);
  }
  for (uint64_t reason = 1; end && reason <= REASONS; reason++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_STW_END, 1);
  }
  bomb_flush(&bomb);
  explode("reasons", &bomb, TB_OK);
}

/* The trace is valid for Go's reader. */
Test(bomb_costs, stops_of_ever_new_reasons_that_never_end) {
  open_stops(false);
}

Test(bomb_costs, stops_of_ever_new_reasons_that_end) {
  open_stops(true);
}

/* ---- annotations ---- */

Test(bomb_costs, regions_of_ever_new_names_one_inside_another) {
  enum { NAMES = 50000 };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  strings(&bomb, NAMES, 8);
  known(&bomb, 0);
  for (uint64_t name = 1; name <= NAMES; name++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_USER_REGION_BEGIN, 1, name, name, 0);
  }
  for (uint64_t name = NAMES; name > 0; name--) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_USER_REGION_END, 1, name, name, 0);
  }
  bomb_flush(&bomb);
  explode("regions", &bomb, TB_OK);
}

Test(bomb_costs, tasks_and_waits_of_ever_new_names) {
  enum { NAMES = 50000 };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  strings(&bomb, NAMES, 8);
  known(&bomb, 0);
  for (uint64_t name = 1; name <= NAMES; name++) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_USER_TASK_BEGIN, 1, name, 0, name, 0);
    ADD(&bomb, TW_EV_GO_BLOCK, 1, name, 0);
    ADD(&bomb, TW_EV_GO_UNBLOCK, 1, 1, 2 * name - 1, 0);
    ADD(&bomb, TW_EV_GO_START, 1, 1, 2 * name);
    if (name % 2 == 0) ADD(&bomb, TW_EV_USER_TASK_END, 1, name, 0);
  }
  bomb_flush(&bomb);
  explode("tasks", &bomb, TB_OK);
}

Test(bomb_costs, stops_whose_reasons_differ_in_their_last_byte) {
  enum { REASONS = 60 };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  strings(&bomb, REASONS, TW_STRING_BYTES_MAX);
  known(&bomb, 0);
  while (bomb.trace.len < LONG) stop_world(&bomb, 1, 1, REASONS);
  bomb_flush(&bomb);
  explode("long reasons", &bomb, TB_OK);
}

/* ---- stacks ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ (hash >> 29);
}

/* The frames are forged as if a frame's hash began with a known number. */
Test(bomb_costs, frames_whose_hashes_were_forged) {
  enum { STACKS = 300, FRAMES = 128, START = 0x5bd1 };
  struct bomb bomb;
  uint64_t pc = 1;

  bomb_begin(&bomb, FAST);
  for (uint64_t stack = 1; stack <= STACKS; stack++) {
    ADD(&bomb, TW_EV_STACKS);
    ADD(&bomb, TW_EV_STACK, stack, FRAMES);
    for (unsigned i = 0; i < FRAMES; i++, pc++) {
      const uint64_t frame[] = { pc, 0, 0, mix(START, pc) };
      bomb_numbers(&bomb, frame, 4);
    }
    bomb_flush(&bomb);
  }
  known(&bomb, 0);
  for (uint64_t stack = 1; stack <= STACKS; stack++) {
    ADD(&bomb, TW_EV_GO_SYSCALL_BEGIN, 1, stack, stack);
    ADD(&bomb, TW_EV_GO_SYSCALL_END, 1);
  }
  bomb_flush(&bomb);
  explode("forged frames", &bomb, TB_OK);
}

/* ---- procs ---- */

Test(bomb_costs, an_abandoned_proc_named_again_and_again_among_many_threads) {
  enum { THREADS = 20000 / SMALLER };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  for (int64_t n = 1; n <= THREADS; n++) {
    bomb.thread = n;
    ADD(&bomb, TW_EV_GO_STATUS, 1, 1 + (uint64_t)n, (uint64_t)n, TW_GO_SYSCALL);
    bomb_flush(&bomb);
  }
  bomb.thread = 0;
  ADD(&bomb, TW_EV_PROC_STATUS, 100, 0, TW_PROC_SYSCALL);
  while (bomb.trace.len < 2 * LONG) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_PROC_STATUS, 1, 0, TW_PROC_SYSCALL_ABANDONED);
  }
  bomb_flush(&bomb);
  explode("abandoned", &bomb, TB_OK);
}

/* Two threads claim the proc. One of them takes another proc, again and again. */
Test(bomb_costs, an_abandoned_proc_whose_last_holder_has_moved_on) {
  enum { THREADS = 20000 / SMALLER };
  struct bomb bomb;

  bomb_begin(&bomb, FAST);
  for (int64_t n = 1; n <= THREADS; n++) {
    bomb.thread = n;
    ADD(&bomb, TW_EV_GO_STATUS, 1, 1 + (uint64_t)n, (uint64_t)n, TW_GO_SYSCALL);
    if (n == THREADS) ADD(&bomb, TW_EV_PROC_STATUS, 100, 0, TW_PROC_SYSCALL);
    bomb_flush(&bomb);
  }
  bomb.thread = 0;
  bomb.time = 1000;
  while (bomb.trace.len < 2 * LONG) {
    bomb_room(&bomb);
    ADD(&bomb, TW_EV_PROC_STATUS, 1, 0, TW_PROC_SYSCALL);
    ADD(&bomb, TW_EV_PROC_STATUS, 1, 1, TW_PROC_SYSCALL);
    ADD(&bomb, TW_EV_PROC_STATUS, 1, 0, TW_PROC_SYSCALL_ABANDONED);
  }
  bomb_flush(&bomb);
  explode("moved on", &bomb, TB_FUEL);
}

/* ---- tables that one generation fills and the next ones clear ---- */

static void generation(struct work *work, struct bomb *bomb, bool *out_broken) {
  to_analyses_epoch(work->analyses);
  cr_assert_eq(to_reader_begin(work->reader), TB_OK);
  *out_broken = to_reader_read(work->reader, bomb->trace.data, bomb->trace.len) != TB_OK;
}

enum filled { PROCS, GOROUTINES, THREADS, CALLS, STRINGS, STACKS, TABLES };

static void fill(struct bomb *bomb, enum filled what) {
  enum { MANY = 30000 / SMALLER };

  bomb_begin(bomb, FAST);
  bomb->thread = 1;
  for (uint64_t n = 1; n <= MANY; n++) {
    bomb_room(bomb);
    switch (what) {
    case STRINGS:
    case STACKS:
      bomb->thread = BOMB_NO_THREAD;
      if (bomb->batch.len == 0) ADD(bomb, what == STRINGS ? TW_EV_STRINGS : TW_EV_STACKS);
      ADD(bomb, what == STRINGS ? TW_EV_STRING : TW_EV_STACK, n, 0);
      break;
    case PROCS: ADD(bomb, TW_EV_PROC_STATUS, 0, n, TW_PROC_IDLE); break;
    case GOROUTINES: ADD(bomb, TW_EV_GO_STATUS, 0, n << 20, UINT64_MAX, TW_GO_WAITING); break;
    case CALLS: ADD(bomb, TW_EV_GO_STATUS, 0, n, n, TW_GO_SYSCALL); break;
    default:
      bomb->thread = (int64_t)n;
      ADD(bomb, TW_EV_PROC_STATUS, 0, n, TW_PROC_IDLE);
      bomb_flush(bomb);
    }
  }
  if (bomb->batch.len > 0) bomb_flush(bomb);
  bomb->thread = 1; /* a generation needs some events */
  if (what == STRINGS || what == STACKS) {
    ADD(bomb, TW_EV_PROC_STATUS, 0, 1, TW_PROC_IDLE);
    bomb_flush(bomb);
  }
}

Test(bomb_costs, a_full_table_costs_the_broken_generations_after_it_nothing) {
  static const char *const names[] = { "procs", "goroutines", "threads",
                                       "calls", "strings",    "stacks" };
  enum { BROKEN = 10000 / SMALLER };

  for (unsigned what = 0; what < TABLES; what++) {
    struct bomb full, broken;
    struct work work;
    bool is_broken;

    fill(&full, (enum filled)what);
    bomb_begin(&broken, FAST);
    broken.thread = 1;
    ADD(&broken, TW_EV_GO_STATUS, 0, 1, 2, TW_GO_SYSCALL);
    ADD(&broken, TW_EV_PROC_STOP, 1);
    bomb_flush(&broken);
    start(&work);
    double begun = cpu_seconds();
    generation(&work, &full, &is_broken);
    cr_expect_not(is_broken, "%s: %s", names[what], work.diag.text);
    for (int i = 0; i < BROKEN; i++) {
      generation(&work, &broken, &is_broken);
      cr_assert(is_broken);
    }
    double seconds = cpu_seconds() - begun;
    check_cost(names[what], seconds, full.trace.len + BROKEN * broken.trace.len);
    stop(&work);
    bomb_end(&full);
    bomb_end(&broken);
  }
}
