#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/stacks/idle.h"
#include "unit/online/analysis/fake_generation.h"
#include "wire/mark.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

enum { SLEEP = 1, NET = 2, CHAN = 3, SYNC = 4, FIBER = 5, THOUGHT = 6 }; /* strings */
enum { OWN = 1, WAKER = 2, ACCEPT = 3, HANDLER = 4, AGENT = 5, WORKER = 6, IN_C = 7 };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SLEEP] = "sleep",
              [NET] = "network",
              [CHAN] = "chan receive",
              [SYNC] = "sync",
              [FIBER] = "coroutine",
              [THOUGHT] = "deep thought" },
  .stack = { [OWN] = { { 100, 7, "runtime.chanrecv1", "chan.go" },
                       { 200, 9, "main.reader", "main.go" } },
             [WAKER] = { { 300, 8, "runtime.chansend1", "chan.go" },
                         { 400, 3, "main.main", "main.go" } },
             [ACCEPT] = { { 500, 1, "internal/poll.(*FD).Accept", "fd.go" },
                          { 510, 1, "net.(*TCPListener).Accept", "tcp.go" },
                          { 520, 1, "net/http.(*Server).Serve", "server.go" },
                          { 530, 1, "main.serve", "main.go" } },
             [HANDLER] = { { 600, 1, "sync.(*Mutex).Lock", "mutex.go" },
                           { 610, 1, "main.handle", "main.go" },
                           { 620, 1, "main.worker", "main.go" } },
             [AGENT] = { { 700, 1, "tracecollect.invalid/traceagent._Cfunc_ta_forward_write", "" },
                         { 710, 1, "tracecollect.invalid/traceagent.(*writer).Write", "" },
                         { 720, 1, "runtime/trace.Start.func1", "" } },
             [IN_C] = { { 800, 1, "pthread_cond_wait", "" }, { 810, 1, "pool_main", "pool.c" } },
             [WORKER] = { { 100, 7, "runtime.chanrecv1", "chan.go" },
                          { 620, 1, "main.worker", "main.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void sync_event(struct tt_analyses *t) {
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void status(struct tt_analyses *t, to_ns time, int64_t g, enum tw_go_status state) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, state });
}

/* Goroutines 1 to 3 run on the Ps with their numbers. */
static void open_stream(struct tt_analyses *t, size_t stacks_max) {
  tt_analyses_open(t, 10 * MS, stacks_max);
  sync_event(t);
  for (int64_t g = 1; g <= 3; g++) status(t, 1 + g, g, TW_GO_RUNNING);
}

static void block(struct tt_analyses *t, to_ns time, int64_t g, unsigned reason, unsigned stack) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { reason, stack });
}

/* by: the goroutine that wakes g; 0: the runtime. */
static void unblock(struct tt_analyses *t, to_ns time, int64_t by, int64_t g) {
  int64_t at = by != 0 ? by : TO_NONE;

  TT_FEED(t, &gen1, .time = time, .m = by, .p = at, .g = at, .slot = slot(g),
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, by != 0 ? WAKER : 0 });
}

static void start(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static void wait_for(struct tt_analyses *t, to_ns from, to_ns until, int64_t by, int64_t g,
                     unsigned reason, unsigned stack) {
  block(t, from, g, reason, stack);
  unblock(t, until, by, g);
  start(t, until, g);
}

static const struct to_report *report(struct tt_analyses *t, enum to_analysis_kind kind) {
  return tt_report(t, kind, TO_WINDOW_ALL);
}

static bool text_is(const struct to_value *value, const char *text) {
  return !value->none && strcmp(value->text.data, text) == 0;
}

static uint64_t pc(const struct to_value *value) {
  return value->stack->len == 0 ? 0 : value->stack->frames[0]->pc;
}

/* New versions of Go have new reasons, and a C program has its own. */
Test(an_block, reasons_that_no_table_has_are_told_apart_by_their_words) {
  struct tt_analyses t;

  open_stream(&t, 100);
  wait_for(&t, 100, 400, 1, 2, FIBER, OWN);
  wait_for(&t, 500, 600, 1, 2, THOUGHT, OWN);
  block(&t, 700, 3, THOUGHT, OWN);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_BLOCK, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_reason")->rows, 2);
  cr_assert_str_eq(tt_cell(r, "by_reason", 0, "reason")->text.data, "coroutine");
  cr_assert_str_eq(tt_cell(r, "by_reason", 0, "id")->text.data, "/other/coroutine");
  cr_assert_eq(tt_cell(r, "by_reason", 0, "blocked")->distribution->sum.total_ns, 300);
  cr_assert_str_eq(tt_cell(r, "by_reason", 1, "reason")->text.data, "deep thought");
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert_str_eq(tt_cell(r, "waiting_now", 0, "reason")->text.data, "deep thought");
  cr_assert_str_eq(tt_cell(r, "longest", 0, "reason")->text.data, "coroutine");
  tt_analyses_close(&t);
}

Test(an_block, a_wait_counts_by_reason_stack_waker_and_entry) {
  struct tt_analyses t;

  open_stream(&t, 100);
  wait_for(&t, 100, 300, 1, 2, CHAN, OWN);
  wait_for(&t, 400, 500, 1, 2, CHAN, OWN);
  wait_for(&t, 600, 1000, 0, 3, NET, HANDLER);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.count, 3);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 700);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.max_ns, 400);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.lower_bounds, 0);
  tt_median_is(tt_distribution(r, "blocked"), 200);
  cr_assert_eq(tt_distribution(r, "idle")->sum.count, 0);
  cr_assert_eq(tt_table(r, "by_reason")->rows, 2);
  cr_assert(text_is(tt_cell(r, "by_reason", 0, "reason"), "network"));
  cr_assert(text_is(tt_cell(r, "by_reason", 0, "id"), "/io"));
  cr_assert(text_is(tt_cell(r, "by_reason", 0, "class"), "net"));
  cr_assert_eq(tt_cell(r, "by_reason", 0, "blocked_ns")->number, 400);
  cr_assert(text_is(tt_cell(r, "by_reason", 1, "class"), "chan"));
  cr_assert_eq(tt_cell(r, "by_reason", 1, "blocked")->distribution->sum.count, 2);
  cr_assert_eq(tt_cell(r, "by_reason", 1, "blocked_ns")->number, 300);
  cr_assert_eq(tt_cell(r, "by_reason", 1, "idle_ns")->number, 0);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert_eq(pc(tt_cell(r, "by_stack", 0, "stack")), 600);
  cr_assert(text_is(tt_cell(r, "by_stack", 1, "reason"), "chan receive"));
  cr_assert_eq(tt_cell(r, "by_stack", 1, "blocked")->distribution->sum.total_ns, 300);
  cr_assert_eq(tt_table(r, "by_waker")->rows, 2);
  cr_assert_eq(pc(tt_cell(r, "by_waker", 0, "waker_stack")), 0, "the runtime");
  cr_assert_eq(pc(tt_cell(r, "by_waker", 1, "stack")), 100);
  cr_assert_eq(pc(tt_cell(r, "by_waker", 1, "waker_stack")), 300);
  cr_assert_eq(tt_cell(r, "by_waker", 1, "blocked")->distribution->sum.max_ns, 200);
  cr_assert(text_is(tt_cell(r, "by_entry", 0, "entry"), "main.worker"));
  cr_assert(text_is(tt_cell(r, "by_entry", 1, "entry"), "main.reader"));
  cr_assert_eq(tt_table(r, "longest")->rows, 3);
  cr_assert_eq(tt_cell(r, "longest", 0, "waited_ns")->number, 400);
  cr_assert(tt_cell(r, "longest", 0, "waker")->none);
  cr_assert_eq(tt_cell(r, "longest", 1, "waited_ns")->number, 200);
  cr_assert_eq(tt_cell(r, "longest", 1, "start_ns")->number, 100);
  cr_assert_eq(tt_cell(r, "longest", 1, "goroutine")->number, 2);
  cr_assert_eq(tt_cell(r, "longest", 1, "waker")->number, 1);
  cr_assert_eq(pc(tt_cell(r, "longest", 1, "waker_stack")), 300);
  cr_assert_eq(tt_table(r, "waiting_now")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_block, sync_and_net_are_block_of_their_classes) {
  struct tt_analyses t;

  open_stream(&t, 100);
  wait_for(&t, 100, 110, 1, 2, CHAN, OWN);
  wait_for(&t, 200, 220, 1, 2, SYNC, HANDLER);
  wait_for(&t, 300, 340, 0, 2, NET, HANDLER);
  wait_for(&t, 400, 480, 0, 2, SLEEP, HANDLER);
  block(&t, 500, 2, CHAN, OWN);
  block(&t, 600, 3, NET, HANDLER);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 150);
  cr_assert_eq(tt_table(r, "longest")->rows, 4);
  cr_assert_eq(tt_figure(r, "waiting")->number, 2);
  r = report(&t, TO_ANALYSIS_SYNC);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 30);
  cr_assert_eq(tt_table(r, "by_reason")->rows, 2);
  cr_assert(text_is(tt_cell(r, "by_reason", 0, "reason"), "sync"));
  cr_assert_eq(tt_table(r, "longest")->rows, 2);
  cr_assert_eq(tt_cell(r, "longest", 0, "waited_ns")->number, 20);
  cr_assert_eq(tt_figure(r, "waiting")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "goroutine")->number, 2);
  r = report(&t, TO_ANALYSIS_NET);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 40);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 1);
  cr_assert_eq(tt_table(r, "by_waker")->rows, 1);
  cr_assert_eq(tt_table(r, "by_entry")->rows, 1);
  cr_assert_eq(tt_table(r, "longest")->rows, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "goroutine")->number, 3);
  to_analyses_epoch(t.a);
  cr_assert_eq(tt_figure(report(&t, TO_ANALYSIS_BLOCK), "cut")->number, 2);
  cr_assert_eq(tt_figure(report(&t, TO_ANALYSIS_SYNC), "cut")->number, 1);
  cr_assert_eq(tt_figure(report(&t, TO_ANALYSIS_NET), "cut")->number, 1);
  cr_assert_eq(tt_figure(report(&t, TO_ANALYSIS_BLOCK), "waiting")->number, 0);
  cr_assert_eq(tt_distribution(report(&t, TO_ANALYSIS_BLOCK), "blocked")->sum.count, 4);
  tt_analyses_close(&t);
}

Test(an_block, a_wait_from_before_the_first_sync_is_a_lower_bound) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 50, 7, TW_GO_WAITING);
  TT_FEED(&t, &gen1, .time = 90, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "lower_bound")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "age_ns")->number, 89);
  unblock(&t, 101, 1, 7);
  r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 100);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.lower_bounds, 1);
  cr_assert_eq(tt_table(r, "waiting_now")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_block, idle_time_is_apart_and_crowds_out_no_long_wait) {
  struct tt_analyses t;
  to_ns now = 1000;

  open_stream(&t, 100);
  for (int i = 0; i < 40; i++, now += 2000) wait_for(&t, now, now + 1000, 0, 2, NET, ACCEPT);
  for (int i = 0; i < 20; i++, now += 100) wait_for(&t, now, now + 1 + i, 1, 3, SYNC, HANDLER);
  block(&t, now, 2, NET, ACCEPT);
  block(&t, now + 10, 3, SYNC, HANDLER);
  TT_FEED(&t, &gen1, .time = now + 20, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.count, 20);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 210);
  cr_assert_eq(tt_distribution(r, "idle")->sum.count, 40);
  cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, 40000);
  cr_assert_eq(tt_figure(r, "waiting")->number, 1);
  cr_assert_eq(tt_figure(r, "waiting_idle")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "goroutine")->number, 3, "idle ones stand last");
  cr_assert_eq(tt_cell(r, "waiting_now", 1, "idle")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 1, "age_ns")->number, 20);
  cr_assert_eq(tt_table(r, "longest")->rows, 16);
  cr_assert_eq(tt_cell(r, "longest", 0, "waited_ns")->number, 20);
  cr_assert_eq(tt_cell(r, "longest", 15, "waited_ns")->number, 5);
  cr_assert(text_is(tt_cell(r, "by_reason", 1, "reason"), "network"));
  cr_assert_eq(tt_cell(r, "by_reason", 1, "blocked_ns")->number, 0);
  cr_assert_eq(tt_cell(r, "by_reason", 1, "idle_ns")->number, 40000);
  cr_assert_eq(tt_cell(r, "by_stack", 1, "idle_ns")->number, 40000);
  cr_assert_eq(tt_cell(r, "by_waker", 1, "idle_ns")->number, 40000);
  cr_assert_eq(tt_cell(r, "by_entry", 1, "idle_ns")->number, 40000);
  tt_analyses_close(&t);
}

Test(an_block, what_is_idle_can_be_added_and_taken_back) {
  static const struct {
    const char *patterns;
    uint64_t blocked, idle;
  } cases[] = {
    { NULL, 1 + 10, 100 },
    { "main.worker", 1, 100 + 10 }, /* but not while its handler waits for a lock */
    { "sync: x, main.worker", 1, 110 },
    { "net:main.*", 11, 100 },
    { "chan:main.work*", 1, 110 },
    { "chan receive:*worker", 1, 110 },
    { "*handle*", 10, 101 },
    { "!net.(*TCPListener).Accept", 111, 0 },
    { "!*,sync:*", 110, 1 },
    { "pool_main", 11, 1100 },
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct tt_analyses t;
    struct to_analysis_config config = { .stacks_max = 100, .idle = cases[i].patterns };
    tb_mem_init(&t.mem, tb_mem_libc, NULL, SIZE_MAX);
    cr_assert_eq(to_analyses_new(&t.mem, &config, &t.a), TB_OK);
    sync_event(&t);
    for (int64_t g = 1; g <= 3; g++) status(&t, 1 + g, g, TW_GO_RUNNING);
    wait_for(&t, 100, 101, 1, 2, SYNC, HANDLER);
    wait_for(&t, 200, 210, 1, 2, CHAN, WORKER);
    wait_for(&t, 300, 400, 0, 3, NET, ACCEPT);
    if (i + 1 == sizeof(cases) / sizeof(*cases)) wait_for(&t, 500, 1500, 1, 3, SYNC, IN_C);
    const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
    cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, cases[i].blocked, "%zu", i);
    cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, cases[i].idle, "%zu", i);
    tt_analyses_close(&t);
  }
}

Test(an_block, a_pattern_that_means_nothing_is_refused_by_name) {
  static const char *const good[] = { "",
                                      " , ",
                                      "main.f",
                                      "ns::f",
                                      "net:*",
                                      "syscall:x*",
                                      "!sleep:*f*",
                                      "sync.(*Cond).Wait:f",
                                      "1:a,2:a,3:a,4:a,5:a,6:a,7:a,8:a,1:b" };
  static const char *const bad[] = { "net:", "main.*.f", "!", "1:a,2:a,3:a,4:a,5:a,6:a,7:a,8:a,9:a",
                                     "main.f, x:" };
  struct tb_diag diag;

  for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
    cr_assert_eq(to_idle_check(good[i], NULL), TB_OK, "%s", good[i]);
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    tb_diag_clear(&diag);
    cr_assert_eq(to_idle_check(bad[i], &diag), TB_BROKEN, "%s", bad[i]);
  }
  cr_assert(strstr(diag.text, "\"x:\"") != NULL, "%s", diag.text);
}

Test(an_block, a_pattern_may_name_a_reason_that_no_table_has_which_is_noted) {
  static const struct {
    const char *patterns, *noted;
    uint64_t idle;
  } cases[] = {
    { "main.f,net:*", NULL, 0 },
    { "deep thought:main.reader", "\"deep thought\"", 100 },
    { "coroutine:*, deep thought:*", "\"coroutine\"", 110 },
    { "thought:*", "\"thought\"", 0 },
    { "main.reader, !deep thought:*", "\"deep thought\"", 10 },
    { "other:*, thought:main.f", "\"thought\"", 110 },
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct tb_diag note = { 0 };
    struct tt_analyses t;
    open_stream(&t, 100);
    cr_assert_eq(to_idle_check(cases[i].patterns, &note), TB_OK, "%s", note.text);
    cr_assert_eq(to_idle_unknown(cases[i].patterns, &note), cases[i].noted != NULL, "%zu", i);
    if (cases[i].noted != NULL)
      cr_assert_not_null(strstr(note.text, cases[i].noted), "%s", note.text);
    cr_assert_eq(to_analyses_idle(t.a, cases[i].patterns), TB_OK);
    wait_for(&t, 100, 110, 1, 2, FIBER, OWN);
    wait_for(&t, 200, 300, 1, 2, THOUGHT, OWN);
    const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
    cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, cases[i].idle, "%zu", i);
    tt_analyses_close(&t);
  }
}

/* Beyond the limit, waits are still separate by reason. */
Test(an_block, combinations_beyond_the_limit_are_summed_by_reason) {
  static struct to_generation many = { .number = 1, .string = { [SYNC] = "sync" } };
  struct tt_analyses t;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  open_stream(&t, 3);
  for (to_ns i = 1; i <= TT_FAKE_STACKS; i++) {
    TT_FEED(&t, &many, .time = i * 1000, .m = 2, .p = 2, .g = 2, .type = TW_EV_GO_BLOCK,
            .args = { SYNC, (uint64_t)i });
    unblock(&t, i * 1000 + i, 0, 2);
    start(&t, i * 1000 + i, 2);
  }
  const struct to_report *r = report(&t, TO_ANALYSIS_SYNC);
  cr_assert(tt_table(r, "by_stack")->has_other);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 4);
  cr_assert_eq(tt_cell(r, "by_stack", 3, "blocked")->distribution->sum.total_ns, 4 + 5 + 6 + 7 + 8);
  cr_assert_eq(tt_cell(r, "by_waker", 3, "blocked")->distribution->sum.count, 5);
  cr_assert_eq(tt_cell(r, "by_reason", 0, "blocked")->distribution->sum.total_ns, 36);
  tt_analyses_close(&t);
}

Test(an_block, of_very_many_that_wait_the_oldest_are_listed_and_all_counted) {
  enum { GOROUTINES = 5000 };
  struct tt_analyses t;

  open_stream(&t, 100);
  for (int64_t i = 0; i < GOROUTINES; i++) {
    int64_t g = 10 + i * 7 % GOROUTINES;
    TT_FEED(&t, &gen1, .time = 1000 + i, .m = 1, .p = 1, .g = 1, .slot = slot(g),
            .type = TW_EV_GO_CREATE_BLOCKED, .args = { (uint64_t)g, OWN, WAKER });
  }
  const struct to_report *r;
  cr_assert_eq(to_analyses_report(t.a, TO_ANALYSIS_BLOCK, TO_WINDOW_ALL, 10000, &r), TB_OK);
  cr_assert_eq(tt_figure(r, "waiting")->number, GOROUTINES);
  cr_assert_eq(tt_table(r, "waiting_now")->rows, 1024);
  for (size_t i = 0; i < 1024; i++)
    cr_assert_eq(tt_cell(r, "waiting_now", i, "goroutine")->number,
                 10 + (int64_t)i * 7 % GOROUTINES);
  tt_analyses_close(&t);
}

/* A call of the agent waits in C while it has nothing to send. */
Test(an_block, what_is_idle_can_be_changed_between_two_waits) {
  struct tt_analyses t;

  open_stream(&t, 100);
  wait_for(&t, 100, 300, 1, 2, CHAN, WORKER);
  cr_assert_eq(to_analyses_generation_ends(t.a, &gen1), TB_OK);
  cr_assert_eq(to_analyses_idle(t.a, "no reason:"), TB_BROKEN);
  cr_assert_eq(to_analyses_idle(t.a, "main.worker"), TB_OK);
  sync_event(&t);
  wait_for(&t, 400, 900, 1, 2, CHAN, WORKER);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 200);
  cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, 500);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 1);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "blocked")->distribution->sum.total_ns, 200);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "idle_ns")->number, 500);
  tt_analyses_close(&t);
}

Test(an_block, a_call_of_the_agent_is_idle_not_blocked) {
  struct tt_analyses t;

  open_stream(&t, 100);
  for (int64_t g = 2; g <= 3; g++)
    TT_FEED(&t, &gen1, .time = 100, .m = g, .p = g, .g = g, .type = TW_EV_GO_SYSCALL_BEGIN,
            .args = { 1, g == 2 ? AGENT : HANDLER });
  TT_FEED(&t, &gen1, .time = 100 + SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_ANALYSIS_SYSCALL);
  cr_assert_eq(tt_table(r, "blocked_now")->rows, 1);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "goroutine")->number, 3);
  cr_assert_eq(tt_table(r, "idle_now")->rows, 1);
  cr_assert_eq(tt_cell(r, "idle_now", 0, "goroutine")->number, 2);
  cr_assert_eq(tt_cell(r, "idle_now", 0, "age_ns")->number, SECOND);
  cr_assert_eq(tt_figure(r, "open")->number, 2);
  tt_analyses_close(&t);
}

/* ---- a C program ---- */

enum { CONDITION = 1, POLL = 2, LOCK = 3 }; /* strings */
enum {
  COND_WAIT = 1,
  EPOLL_WAIT = 2,
  WORKS = 3,
  ASKS = 4,
  MUTEX_LOCK = 5,
  HELPS = 6,
  ROW_LOCK = 7,
  CLIENT = 8
};

/* Without stacks: each is the name of a call, or of the function that a thread began with. */
static const struct to_generation c_gen = {
  .number = 1,
  .string = { [CONDITION] = "sync (condition)",
              [POLL] = "network (poll)",
              [LOCK] = "sync",
              [TW_C_MARK_STRING] = TW_C_MARK },
  .stack = { [COND_WAIT] = { { 100, 0, "pthread_cond_wait", "" } },
             [EPOLL_WAIT] = { { 110, 0, "epoll_wait", "" } },
             [MUTEX_LOCK] = { { 120, 0, "pthread_mutex_lock", "" } },
             [WORKS] = { { 200, 0, "job_worker", "" } },
             [ASKS] = { { 210, 0, "ask_for_prices", "" } },
             [HELPS] = { { 220, 0, "IOThreadMain", "" } },
             [ROW_LOCK] = { { 110, 0, "epoll_wait", "" },
                            { 310, 0, "WaitLatch", "" },
                            { 320, 0, "ProcSleep", "" } },
             [CLIENT] = { { 110, 0, "epoll_wait", "" },
                          { 300, 0, "WaitEventSetWait", "" },
                          { 330, 0, "secure_read", "" } } },
};

/* A thread that begins with this function, and waits for so long. */
static void wait_in(struct tt_analyses *t, int64_t g, unsigned entry, unsigned reason,
                    unsigned call, to_ns ns) {
  to_ns at = 100 * g;
  const struct to_event events[] = {
    { .time = at,
      .m = 1,
      .p = 1,
      .g = 1,
      .slot = slot(g),
      .type = TW_EV_GO_CREATE,
      .args = { (uint64_t)g, entry, 0 } },
    { .time = at,
      .m = g,
      .p = g,
      .g = TO_NONE,
      .slot = slot(g),
      .type = TW_EV_GO_START,
      .args = { (uint64_t)g, 1 } },
    { .time = at, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK, .args = { reason, call } },
    { .time = at + ns,
      .m = g,
      .p = TO_NONE,
      .g = TO_NONE,
      .slot = slot(g),
      .type = TW_EV_GO_UNBLOCK,
      .args = { (uint64_t)g, 2, 0 } },
  };

  cr_assert_eq(to_analyses_events(t->a, &c_gen, events, 4), TB_OK);
}

static void check_c_waits(const char *patterns, uint64_t blocked_ns, uint64_t idle_ns) {
  struct to_analysis_config config = { .stacks_max = 100, .idle = patterns };
  struct tt_analyses t;

  tb_mem_init(&t.mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_analyses_new(&t.mem, &config, &t.a), TB_OK);
  TT_FEED(&t, &c_gen, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
  TT_FEED(&t, &c_gen, .time = 2, .m = 1, .p = 1, .g = TO_NONE, .slot = slot(1),
          .type = TW_EV_GO_STATUS, .args = { 1, 1, TW_GO_RUNNING });
  wait_in(&t, 4, WORKS, CONDITION, COND_WAIT, 1);
  wait_in(&t, 5, ASKS, CONDITION, COND_WAIT, 2);
  wait_in(&t, 6, ASKS, POLL, EPOLL_WAIT, 4);
  wait_in(&t, 7, WORKS, LOCK, MUTEX_LOCK, 8);
  wait_in(&t, 8, HELPS, LOCK, MUTEX_LOCK, 16);
  wait_in(&t, 9, ASKS, POLL, ROW_LOCK, 32);
  wait_in(&t, 10, ASKS, POLL, CLIENT, 64);
  const struct to_report *r = report(&t, TO_ANALYSIS_BLOCK);
  cr_assert_eq(r->program, TO_PROGRAM_C);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, blocked_ns, "\"%s\": %d", patterns,
               (int)tt_distribution(r, "blocked")->sum.total_ns);
  cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, idle_ns, "%s", patterns);
  tt_analyses_close(&t);
}

Test(an_block, a_c_programs_event_loop_and_its_workers_are_idle_by_the_function_they_began_with) {
  check_c_waits("", 2 + 8 + 32, 1 + 4 + 16 + 64);
  check_c_waits("sync (condition):ask_*", 8 + 32, 1 + 2 + 4 + 16 + 64);
  check_c_waits("!network (poll):*", 2 + 4 + 8 + 32 + 64, 1 + 16);
  check_c_waits("network (poll):ProcSleep", 2 + 8, 1 + 4 + 16 + 32 + 64);
  check_c_waits("!job_worker", 1 + 2 + 8 + 32, 4 + 16 + 64);
  check_c_waits("!*", 127, 0);
}
