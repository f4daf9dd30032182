/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines that interacted, and how many were runnable at once: spans made by hand and at
 * random. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/explain/crowd.h"
#include "online/explain/related.h"

static struct tb_mem mem;
static struct to_timeline timeline;

static void begin(to_ns from, to_ns until) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_timeline_init(&timeline, &mem, from, until);
}

static void end(void) {
  to_timeline_fini(&timeline);
  cr_assert_eq(mem.bytes, 0);
}

/* Goroutine N is life N. by: the goroutine that ended the wait; 0: none. */
static void add(enum to_go_state state, uint64_t life, to_ns from, to_ns until, uint64_t by) {
  struct to_span span = { .kind = TO_SPAN_GOROUTINE,
                          .state = (uint8_t)state,
                          .id = (int64_t)life,
                          .life = life,
                          .from = from,
                          .until = until,
                          .by_life = by,
                          .proc = TO_NONE,
                          .until_known = true };
  cr_assert_eq(to_timeline_add(&timeline, &span, 0, 0), TB_OK);
}

static void expect(const struct to_related *r, size_t i, int64_t goroutine, uint32_t depth,
                   uint64_t wakes, uint64_t waited_ns) {
  const struct to_related_goroutine *one = &r->one[i];

  cr_assert_eq(one->history->goroutine, goroutine, "%zu: %ld", i, (long)one->history->goroutine);
  cr_assert_eq(one->depth, depth);
  cr_assert_eq(one->wakes, wakes);
  cr_assert_eq(one->waited_ns, waited_ns, "%zu: %lu", i, (unsigned long)one->waited_ns);
}

Test(related, those_that_ended_its_waits_and_those_that_ended_theirs) {
  struct to_related r;

  begin(100, 1000);
  add(TO_GO_WAITING, 1, 50, 200, 2);  /* 100 of it are inside the interval */
  add(TO_GO_WAITING, 1, 300, 350, 3); /* more time than the wait for 2, once added up */
  add(TO_GO_WAITING, 1, 400, 500, 3);
  add(TO_GO_WAITING, 1, 600, 700, 0);  /* the runtime */
  add(TO_GO_WAITING, 1, 800, 1100, 5); /* ends after the interval */
  add(TO_GO_WAITING, 2, 110, 150, 4);
  add(TO_GO_WAITING, 2, 160, 180, 1); /* the subject is not related to itself */
  add(TO_GO_WAITING, 3, 310, 330, 2); /* found already at depth 1 */
  add(TO_GO_WAITING, 4, 120, 130, 6); /* depth 3 */
  add(TO_GO_RUNNING, 5, 100, 1000, 0);
  add(TO_GO_RUNNING, 6, 100, 1000, 0);
  cr_assert_eq(to_related_find(&r, &timeline, 1, &mem), TB_OK);
  cr_assert_eq(r.n, 3);
  expect(&r, 0, 3, 1, 2, 150);
  expect(&r, 1, 2, 1, 1, 100);
  expect(&r, 2, 4, 2, 1, 40);
  cr_assert_not(r.cut);
  to_related_fini(&r);
  end();
}

Test(related, one_that_is_not_there_has_none) {
  struct to_related r;

  begin(0, 100);
  cr_assert_eq(to_related_find(&r, &timeline, 7, &mem), TB_OK);
  cr_assert_eq(r.n, 0);
  to_related_fini(&r);
  end();
}

Test(related, more_than_a_table_holds_are_cut) {
  struct to_related r;

  begin(0, 100000);
  for (uint64_t by = 2; by < TO_RELATED_MAX + 10; by++) {
    add(TO_GO_RUNNING, by, 0, 1, 0);
    add(TO_GO_WAITING, 1, (to_ns)(10 * by), (to_ns)(10 * by + 5), by);
  }
  cr_assert_eq(to_related_find(&r, &timeline, 1, &mem), TB_OK);
  cr_assert_eq(r.n, TO_RELATED_MAX);
  cr_assert(r.cut);
  to_related_fini(&r);
  end();
}

/* Every answer equals the sum of all overlaps. */
Test(crowd, the_time_of_all_that_were_runnable_is_the_sum_of_their_overlaps) {
  enum { SPANS = 300, LIVES = 7, QUESTIONS = 2000, END = 10000 };
  to_ns at[LIVES] = { 0 };
  struct to_crowd crowd;

  srand(47);
  begin(1, END);
  for (int i = 0; i < SPANS; i++) {
    int life = rand() % LIVES;
    to_ns from = at[life] + rand() % 50, until = from + 1 + rand() % 100;
    add(rand() % 3 > 0 ? TO_GO_RUNNABLE : TO_GO_RUNNING, (uint64_t)life + 1, from, until, 0);
    at[life] = until;
  }
  cr_assert_eq(to_crowd_new(&crowd, &timeline, &mem), TB_OK);
  for (int i = 0; i < QUESTIONS; i++) {
    to_ns from = rand() % END - 100, until = from + rand() % 500;
    uint64_t want = 0;
    for (size_t h = 0; h < timeline.n; h++)
      for (size_t k = 0; k < timeline.history[h].n; k++) {
        const struct to_moment_span *span = &timeline.history[h].span[k];
        to_ns begins = span->from > from ? span->from : from;
        to_ns ends = span->until < until ? span->until : until;
        if (span->state == TO_GO_RUNNABLE && ends > begins) want += (uint64_t)(ends - begins);
      }
    cr_assert_eq(to_crowd_time(&crowd, from, until), want, "%d to %d", (int)from, (int)until);
  }
  to_crowd_fini(&crowd);
  end();
}

Test(crowd, where_none_was_runnable_it_is_nothing) {
  struct to_crowd crowd;

  begin(0, 100);
  add(TO_GO_RUNNING, 1, 0, 100, 0);
  cr_assert_eq(to_crowd_new(&crowd, &timeline, &mem), TB_OK);
  cr_assert_eq(to_crowd_time(&crowd, 0, 100), 0);
  to_crowd_fini(&crowd);
  end();
}
