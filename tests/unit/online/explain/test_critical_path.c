/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of spans made by hand: each of its pieces, exactly. test_critical_path_tiles.c shows that the pieces tile
 * any interval of real traces. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/explain/path_sum.h"
#include "support/caller.h"

static struct tb_mem mem;
static struct to_timeline timeline;
static struct to_path path;
static char text[4096];

static void begin(to_ns from, to_ns until) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_timeline_init(&timeline, &mem, from, until);
}

static void end(void) {
  to_path_fini(&path);
  to_timeline_fini(&timeline);
  cr_assert_eq(mem.bytes, 0);
}

/* Goroutine N is life N; its stack in state S is 10 * N + S. */
static void add(struct to_span span) {
  span.id = (int64_t)span.life;
  cr_assert_eq(to_timeline_add(&timeline, &span, (uint32_t)(10 * span.life + span.state),
                               (uint32_t)span.by_life),
               TB_OK);
}

#define SPAN(state_, life_, from_, until_, ...)                                                    \
  add((struct to_span){ .kind = TO_SPAN_GOROUTINE,                                                 \
                        .state = TO_GO_##state_,                                                   \
                        .life = life_,                                                             \
                        .from = from_,                                                             \
                        .until = until_,                                                           \
                        __VA_ARGS__ })
#define RUNS(life, from, until)     SPAN(RUNNING, life, from, until, .until_known = true)
#define RUNNABLE(life, from, until) SPAN(RUNNABLE, life, from, until, .until_known = true)
#define CALLS(life, from, until)    SPAN(SYSCALL, life, from, until, .until_known = true)
#define WAITS(life, from, until, by, why)                                                          \
  SPAN(WAITING, life, from, until, .until_known = true, .by_life = by, .reason = TO_REASON_##why)
#define BORN(life_, at, until_, by)                                                                \
  add((struct to_span){ .kind = TO_SPAN_LIFE,                                                      \
                        .life = life_,                                                             \
                        .from = at,                                                                \
                        .until = until_,                                                           \
                        .from_known = true,                                                        \
                        .by_life = by })
#define RANGE(kind_, life_, from_, until_)                                                         \
  add((struct to_span){ .kind = TO_SPAN_RANGE,                                                     \
                        .state = TO_RANGE_##kind_,                                                 \
                        .life = life_,                                                             \
                        .from = from_,                                                             \
                        .until = until_ })

/* "DEPTH:gN state from-until [end]; ..." */
static void write_path(void) {
  size_t n = 0;

  text[0] = 0;
  for (size_t i = 0; i < path.n && n + 100 < sizeof(text); i++) {
    const struct to_path_piece *p = &path.piece[i];
    const char *state = p->state == TO_GO_NOT_EXIST ? "?" : to_go_state_name(p->state);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u:g%d %s %d-%d", i > 0 ? "; " : "",
                          p->depth, p->history == NULL ? 0 : (int)p->history->goroutine, state,
                          (int)p->from, (int)p->until);
    if (p->end != TO_PATH_GOES_ON)
      n += (size_t)snprintf(text + n, sizeof(text) - n, " (%s)", to_path_end_name(p->end));
  }
}

static void walk(uint64_t life, to_ns from, to_ns until) {
  to_path_fini(&path);
  cr_assert_eq(to_critical_path(&timeline, life, from, until, &mem, &path), TB_OK, TT_CALLER);
  for (size_t i = 0; i < path.n; i++)
    cr_assert_eq(path.piece[i].from, i == 0 ? from : path.piece[i - 1].until, TT_CALLER);
  if (path.n > 0) cr_assert_eq(path.piece[path.n - 1].until, until, TT_CALLER);
  write_path();
}
#define walk(...) TT_CALL(walk(__VA_ARGS__))

#define EXPECT(words) cr_assert_str_eq(text, words)

Test(critical_path, own_time_is_told_apart_by_state) {
  begin(0, 100);
  RUNS(1, 0, 10);
  RUNNABLE(1, 10, 25);
  RUNS(1, 25, 40);
  CALLS(1, 40, 90);
  RUNS(1, 90, 100);
  walk(1, 0, 100);
  EXPECT("0:g1 Running 0-10; 0:g1 Runnable 10-25; 0:g1 Running 25-40; 0:g1 Syscall 40-90; 0:g1 "
         "Running 90-100");
  cr_assert_eq(path.piece[3].stack, 15);
  end();
}

Test(critical_path, a_wait_is_the_time_of_its_waker_in_the_same_stretch) {
  begin(0, 100);
  CALLS(2, 0, 60);
  RUNS(2, 60, 100);
  RUNS(1, 0, 20);
  WAITS(1, 20, 70, 2, SYNC);
  RUNNABLE(1, 70, 80);
  RUNS(1, 80, 100);
  walk(1, 10, 90);
  EXPECT("0:g1 Running 10-20; 1:g2 Syscall 20-60; 1:g2 Running 60-70; 0:g1 Runnable 70-80; 0:g1 "
         "Running 80-90");
  end();
}

Test(critical_path, waits_are_followed_through_others_and_back) {
  begin(0, 100);
  CALLS(3, 0, 50);
  RUNS(3, 50, 100);
  RUNS(2, 0, 20);
  WAITS(2, 20, 55, 3, CHAN_RECEIVE);
  RUNNABLE(2, 55, 60);
  RUNS(2, 60, 100);
  WAITS(1, 0, 70, 2, SYNC);
  RUNS(1, 70, 100);
  walk(1, 0, 100);
  EXPECT("1:g2 Running 0-20; 2:g3 Syscall 20-50; 2:g3 Running 50-55; 1:g2 Runnable 55-60; 1:g2 "
         "Running 60-70; "
         "0:g1 Running 70-100");
  end();
}

Test(critical_path, a_wait_without_a_waker_ends_the_walk_and_says_why) {
  begin(0, 100);
  WAITS(1, 0, 20, 0, NETWORK);
  WAITS(1, 20, 40, 1, SLEEP);
  WAITS(1, 40, 60, 7, SYNC); /* goroutine 7 has no span */
  SPAN(WAITING, 1, 60, 80, .by_life = 2);
  SPAN(WAITING, 1, 80, 100, .open = true);
  walk(1, 0, 100);
  EXPECT("0:g1 Waiting 0-20 (a timer, the network or the runtime ended it); 0:g1 Waiting 20-40 (a "
         "timer, the network or the runtime ended it); "
         "0:g1 Waiting 40-60 (the trace does not show it); 0:g1 Waiting 60-80 (the trace does not "
         "show it); "
         "0:g1 Waiting 80-100 (it is still open)");
  cr_assert_eq(path.piece[0].reason, TO_REASON_NETWORK);
  cr_assert_eq(path.piece[1].reason, TO_REASON_SLEEP);
  end();
}

Test(critical_path, before_its_birth_the_creators_time_counts) {
  begin(0, 100);
  RUNS(1, 0, 100);
  RUNS(2, 50, 100);
  RUNNABLE(3, 70, 80);
  RUNS(3, 80, 100);
  BORN(2, 50, 200, 1);
  BORN(3, 70, 200, 2);
  walk(3, 20, 100);
  EXPECT("0:g1 Running 20-50; 0:g2 Running 50-70; 0:g3 Runnable 70-80; 0:g3 Running 80-100");
  end();
}

Test(critical_path, a_birth_without_a_creator_ends_the_walk) {
  begin(0, 100);
  RUNS(1, 40, 100);
  BORN(1, 40, 200, 0);
  walk(1, 0, 100);
  EXPECT("0:g1 ? 0-40 (the trace does not show it); 0:g1 Running 40-100");
  walk(9, 0, 100);
  EXPECT("0:g0 ? 0-100 (the trace does not show it)");
  end();
}

Test(critical_path, creators_of_each_other_end_the_walk) {
  begin(0, 100);
  RUNS(1, 40, 100);
  RUNS(2, 50, 100);
  BORN(1, 40, 200, 2);
  BORN(2, 50, 200, 1);
  walk(2, 0, 100);
  EXPECT("0:g1 ? 0-40 (the trace does not show it); 0:g1 Running 40-50; 0:g2 Running 50-100");
  end();
}

Test(critical_path, goroutines_that_wake_each_other_at_one_time_end_the_walk) {
  begin(0, 100);
  WAITS(1, 10, 60, 2, SYNC);
  WAITS(2, 20, 60, 1, SYNC);
  RUNS(1, 60, 100);
  walk(1, 10, 100);
  EXPECT("0:g1 Waiting 10-60 (its waker waited itself); 0:g1 Running 60-100");
  end();
}

Test(critical_path, goroutines_that_wake_each_other_in_turn_are_followed) {
  begin(0, 100);
  RUNS(2, 0, 10);
  WAITS(1, 0, 10, 2, CHAN_RECEIVE);
  RUNS(1, 10, 20);
  WAITS(2, 10, 20, 1, CHAN_RECEIVE);
  RUNS(2, 20, 30);
  WAITS(1, 20, 30, 2, CHAN_RECEIVE);
  RUNS(1, 30, 40);
  walk(1, 0, 40);
  EXPECT("1:g2 Running 0-10; 0:g1 Running 10-20; 1:g2 Running 20-30; 0:g1 Running 30-40");
  end();
}

Test(critical_path, an_interval_that_ends_in_waits_follows_them) {
  begin(0, 100);
  WAITS(1, 0, 90, 2, SYNC);
  RUNS(3, 0, 100);
  WAITS(2, 10, 80, 3, SYNC);
  RUNS(2, 80, 100);
  walk(1, 10, 50);
  EXPECT("2:g3 Running 10-50");
  end();
}

Test(critical_path, a_hole_in_what_is_known_is_a_piece_that_is_not) {
  begin(0, 100);
  RUNS(1, 0, 20);
  RUNS(1, 50, 100);
  walk(1, 10, 100);
  EXPECT("0:g1 Running 10-20; 0:g1 ? 20-50 (the trace does not show it); 0:g1 Running 50-100");
  end();
}

Test(critical_path, spans_that_reach_out_of_the_interval_are_clipped) {
  begin(100, 200);
  RUNS(1, 0, 150);
  RUNS(1, 10, 120);   /* overlaps: left out */
  RUNS(1, 150, 150);  /* empty: left out */
  CALLS(1, 140, 400); /* the first part overlaps */
  RUNS(2, 0, 100);    /* before */
  RUNS(2, 200, 300);  /* after */
  walk(1, 100, 200);
  EXPECT("0:g1 Running 100-150; 0:g1 Syscall 150-200");
  cr_assert_null(to_timeline_find(&timeline, 2));
  walk(1, 120, 120);
  EXPECT("");
  end();
}

Test(critical_path, stops_and_assists_are_counted_where_it_would_run) {
  begin(0, 100);
  RANGE(STW, 9, 2, 4);
  RANGE(GC_MARK_ASSIST, 1, 3, 8);
  RANGE(STW, 9, 12, 25); /* a stop within a stop: two reasons */
  RANGE(STW, 9, 10, 30);
  RANGE(GC_SWEEP, 1, 80, 90);
  RUNS(1, 0, 11);
  RUNNABLE(1, 11, 40);
  CALLS(1, 40, 60);
  RANGE(STW, 9, 45, 50);
  RUNS(1, 60, 100);
  walk(1, 0, 100);
  EXPECT("0:g1 Running 0-11; 0:g1 Runnable 11-40; 0:g1 Syscall 40-60; 0:g1 Running 60-100");
  cr_assert_eq(path.piece[0].stopped_ns, 3);
  cr_assert_eq(path.piece[0].assist_ns, 4);
  cr_assert_eq(path.piece[1].stopped_ns, 19);
  cr_assert_eq(path.piece[1].assist_ns, 0);
  cr_assert_eq(path.piece[2].stopped_ns, 0);
  cr_assert_eq(path.piece[3].stopped_ns, 0);
  end();
}

Test(critical_path, sums_are_the_interval_and_goroutines_behind_come_by_time) {
  struct to_path_sum sum;

  begin(0, 100);
  RANGE(STW, 9, 72, 76);
  CALLS(3, 0, 50);
  RUNS(3, 50, 100);
  RUNS(2, 0, 20);
  WAITS(2, 20, 55, 3, CHAN_RECEIVE);
  RUNNABLE(2, 55, 60);
  RUNS(2, 60, 100);
  WAITS(1, 0, 10, 0, SLEEP);
  WAITS(1, 10, 70, 2, SYNC);
  RUNNABLE(1, 70, 80);
  RUNS(1, 80, 100);
  walk(1, 0, 100);
  cr_assert_eq(to_path_sum_new(&sum, &path, 1, &mem), TB_OK);
  cr_assert_eq(sum.own.total, 40);
  cr_assert_eq(sum.own.ns[TO_PATH_CPU], 20);
  cr_assert_eq(sum.own.ns[TO_PATH_RUNNABLE], 6);
  cr_assert_eq(sum.own.ns[TO_PATH_STOPPED], 4);
  cr_assert_eq(sum.own.ns[TO_PATH_WAITING], 10);
  cr_assert_eq(sum.own_waiting[TO_REASON_SLEEP], 10);
  cr_assert_eq(sum.behind_total, 60);
  cr_assert_eq(sum.n, 2);
  cr_assert_eq(sum.behind[0].history->goroutine, 3);
  cr_assert_eq(sum.behind[0].times.total, 35);
  cr_assert_eq(sum.behind[0].times.ns[TO_PATH_SYSCALL], 30);
  cr_assert_eq(path.piece[sum.behind[0].longest].state, TO_GO_SYSCALL);
  cr_assert_eq(sum.behind[1].history->goroutine, 2);
  cr_assert_eq(sum.behind[1].times.total, 25);
  cr_assert_eq(sum.behind[1].times.ns[TO_PATH_RUNNABLE], 5);
  to_path_sum_fini(&sum);
  end();
}

/* Goroutine i waits from 0 until N - i, and i + 1 wakes it. */
static void chain(int length) {
  begin(0, length + 1);
  for (int i = 0; i < length; i++) {
    WAITS((uint64_t)i + 1, 0, length - i, (uint64_t)i + 2, SYNC);
    RUNS((uint64_t)i + 1, length - i, length + 1);
  }
  RUNS((uint64_t)length + 1, 0, length + 1);
}

Test(critical_path, a_chain_of_a_hundred_thousand_goroutines_is_followed) {
  enum { LENGTH = 100000 };

  chain(LENGTH);
  to_path_fini(&path);
  cr_assert_eq(to_critical_path(&timeline, 1, 0, LENGTH + 1, &mem, &path), TB_OK);
  cr_assert_eq(path.n, LENGTH + 1);
  for (size_t i = 0; i < path.n; i++) {
    cr_assert_eq(path.piece[i].from, i);
    cr_assert_eq(path.piece[i].until, i + 1);
    cr_assert_eq(path.piece[i].depth, LENGTH - i);
  }
  end();
}

Test(critical_path, deeper_than_the_bound_it_says_so) {
  enum { LENGTH = TO_PATH_DEPTH_MAX + 10 };

  chain(LENGTH);
  to_path_fini(&path);
  cr_assert_eq(to_critical_path(&timeline, 1, 0, LENGTH + 1, &mem, &path), TB_OK);
  cr_assert_eq(path.n, TO_PATH_DEPTH_MAX + 1);
  cr_assert_eq(path.piece[0].end, TO_PATH_TOO_DEEP);
  cr_assert_eq(path.piece[0].from, 0);
  cr_assert_eq(path.piece[0].until, LENGTH - TO_PATH_DEPTH_MAX + 1);
  end();
}

Test(critical_path, beyond_the_most_pieces_the_rest_is_one_that_is_not_known) {
  begin(0, 3 * TO_PATH_PIECES_MAX);
  for (int i = 0; i < TO_PATH_PIECES_MAX + 5; i++) RUNS(1, 2 * i, 2 * i + 2);
  to_path_fini(&path);
  cr_assert_eq(to_critical_path(&timeline, 1, 0, 2 * (TO_PATH_PIECES_MAX + 5), &mem, &path), TB_OK);
  cr_assert(path.cut);
  cr_assert_eq(path.n, TO_PATH_PIECES_MAX + 1);
  cr_assert_eq(path.piece[0].state, TO_GO_NOT_EXIST);
  cr_assert_eq(path.piece[0].from, 0);
  cr_assert_eq(path.piece[0].until, 10);
  end();
}

Test(critical_path, past_its_memory_it_answers_so_and_gives_all_back) {
  for (size_t limit = 0; limit < 3000; limit += 16) {
    begin(0, 100);
    mem.bytes_max = limit;
    tb_rc rc = TB_OK;
    for (uint64_t life = 1; life <= 4 && rc == TB_OK; life++) {
      struct to_span span = { .kind = TO_SPAN_GOROUTINE,
                              .state = life < 4 ? TO_GO_WAITING : TO_GO_RUNNING,
                              .life = life,
                              .until = (to_ns)(100 - life),
                              .until_known = true,
                              .by_life = life + 1 };
      rc = to_timeline_add(&timeline, &span, 0, 0);
    }
    if (rc == TB_OK) rc = to_critical_path(&timeline, 1, 0, 99, &mem, &path);
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
    end();
  }
}
