/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of Go's profiles; tests/conformance compares whole profiles with Go's. */
#include <criterion/criterion.h>
#include <string.h>

#include "pack/report_read.h"
#include "tools/tracectl/profiles/go_profile.h"
#include "unit/online/analysis/fake_generation.h"

typedef Tracecollect__V1__StreamReport report;

enum { SELECT = 1, NETWORK, FOREVER, SLEEP };
enum { OWN = 1, WAKER };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SELECT] = "select",
              [NETWORK] = "network",
              [FOREVER] = "forever",
              [SLEEP] = "sleep" },
  .stack = { [OWN] = { { 100, 7, "main.own", "main.go" } },
             [WAKER] = { { 300, 8, "main.wake", "main.go" } } },
};

static struct tb_mem mem;
static struct tk_go_profile profile;
static struct tb_arena arena;
static struct tp_table table;

static void begin(const char *kind) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  tk_go_profile_init(&profile, tk_go_kind_find(kind), &mem);
}

static void end(void) {
  tk_go_profile_fini(&profile);
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

#define FEED(...)                                                                                  \
  cr_assert_eq(tk_go_profile_events(&profile, &gen1, &(struct to_event){ __VA_ARGS__ }, 1), TB_OK)

static void create(to_ns time, uint64_t g) {
  FEED(.time = time, .g = 9, .type = TW_EV_GO_CREATE, .args = { g, OWN, WAKER });
}
static void start(to_ns time, uint64_t g) {
  FEED(.time = time, .g = TO_NONE, .type = TW_EV_GO_START, .args = { g, 1 });
}
static void block(to_ns time, int64_t g, uint64_t reason) {
  FEED(.time = time, .g = g, .type = TW_EV_GO_BLOCK, .args = { reason, OWN });
}
static void wake(to_ns time, uint64_t g, uint64_t stack) {
  FEED(.time = time, .g = 9, .type = TW_EV_GO_UNBLOCK, .args = { g, 2, stack });
}
static void destroy(to_ns time, int64_t g) {
  FEED(.time = time, .g = g, .type = TW_EV_GO_DESTROY);
}

static size_t rows(void) {
  report *r;

  cr_assert_eq(tk_go_profile_report(&profile, &arena, &r), TB_OK);
  cr_assert(tp_report_table(r->report, "go_profile", &table));
  return table.table->n_rows;
}

static void row_is(size_t row, uint64_t pc, uint64_t count, uint64_t ns) {
  const Tracecollect__V1__Row *r = table.table->rows[row];
  const Tracecollect__V1__Distribution *d = tp_row_distribution(r, 1);
  const Tracecollect__V1__Frame *frame = tp_stack_frame(table.report, tp_row_value(r, 0), 0);

  cr_assert_eq(frame == NULL ? 0 : frame->pc, pc);
  cr_assert_eq(d->count, count);
  cr_assert_eq(d->total_ns, ns, "%lu", (unsigned long)d->total_ns);
}

/* A goroutine with two selects, a read and a sleep. */
static void tell(void) {
  create(10, 2);
  start(20, 2);
  block(100, 2, SELECT);
  wake(150, 2, WAKER);
  start(155, 2);
  block(200, 2, NETWORK);
  wake(207, 2, 0);
  start(207, 2);
  block(300, 2, SLEEP);
  wake(400, 2, 0);
  start(410, 2);
  block(500, 2, SELECT);
  wake(501, 2, WAKER);
  start(510, 2);
  block(600, 2, SELECT);
}

Test(go_profile, a_wait_counts_for_its_reason_where_it_blocked_or_was_woken) {
  begin("sync");
  tell();
  cr_assert_eq(rows(), 1);
  row_is(0, 100, 2, 51);
  end();
  begin("net");
  tell();
  cr_assert_eq(rows(), 1);
  row_is(0, 100, 1, 7);
  end();
  begin("sched");
  tell();
  cr_assert_eq(rows(), 2, "a wait of no length is none");
  row_is(0, 0, 1, 10);
  row_is(1, 300, 2, 14);
  end();
  begin("syscall");
  tell();
  cr_assert_eq(rows(), 0);
  end();
}

Test(go_profile, of_an_id_the_last_life_counts_from_its_first_run) {
  begin("sched");
  tell();
  wake(610, 2, WAKER);
  start(620, 2);
  destroy(700, 2);
  create(800, 2);
  start(850, 2);
  block(860, 2, SLEEP);
  wake(870, 2, WAKER);
  start(873, 2);
  cr_assert_eq(rows(), 1);
  row_is(0, 300, 1, 3);
  end();
}

Test(go_profile, where_the_last_life_never_ran_everything_counts) {
  begin("sched");
  create(10, 2);
  start(20, 2);
  destroy(30, 2);
  create(40, 2);
  cr_assert_eq(rows(), 1);
  row_is(0, 300, 1, 10);
  end();
}

Test(go_profile, a_wait_forever_is_an_end) {
  begin("sched");
  create(10, 2);
  start(20, 2);
  block(30, 2, FOREVER);
  wake(40, 2, WAKER);
  start(50, 2);
  cr_assert_eq(rows(), 0);
  destroy(60, 2);
  cr_assert_eq(rows(), 1);
  row_is(0, 300, 1, 10);
  end();
}

Test(go_profile, there_are_four) {
  cr_assert_null(tk_go_kind_find("stw"));
  cr_assert_str_eq(tk_go_kind_find("syscall")->measure, "calls");
  for (int i = 0; i < 3; i++)
    cr_assert_not_null(tk_go_kind_find((const char *[]){ "net", "sync", "sched" }[i]));
}
