/* SPDX-License-Identifier: Apache-2.0 */
/* Thinned generations: what is counted of them, and what goes on. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { LOCK = 1, UNLOCK = 2 };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "sync" },
  .stack = { [LOCK] = { { 100, 7, "sync.Lock", "m.go" }, { 200, 9, "main.worker", "main.go" } },
             [UNLOCK] = { { 300, 8, "sync.Unlock", "m.go" }, { 400, 3, "main.main", "main.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void sync_event(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
}

/* Opens a stream whose goroutines 1 to n run, each on its own P. */
static void open_stream(struct tt_analyses *t, int64_t n) {
  tt_analyses_open(t, 1000, 100);
  sync_event(t, 1);
  for (int64_t g = 1; g <= n; g++)
    TT_FEED(t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
}

static void next_generation(struct tt_analyses *t, to_ns time, bool thins) {
  cr_assert_eq(to_analyses_generation_ends(t->a, &gen1), TB_OK);
  to_analyses_thin(t->a, thins);
  sync_event(t, time);
}

static void block(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { 1, LOCK });
}

static void unblock(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = slot(g), .type = TW_EV_GO_UNBLOCK,
          .args = { (uint64_t)g, 2, UNLOCK });
}

static void start(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static struct to_sum sum_of(struct tt_analyses *t, enum to_analysis_kind kind, const char *figure) {
  return tt_distribution(tt_report(t, kind, TO_WINDOW_ALL), figure)->sum;
}

Test(thin, a_state_counts_whole_if_it_ends_in_a_generation_that_is_counted) {
  struct tt_analyses t;

  open_stream(&t, 2);
  block(&t, 100, 2);
  next_generation(&t, 200, true);
  cr_expect_eq(tt_figure(tt_report(&t, TO_ANALYSIS_SYNC, TO_WINDOW_ALL), "waiting")->number, 1);
  unblock(&t, 300, 2); /* the wait ends: not counted */
  start(&t, 310, 2);
  block(&t, 400, 2); /* begins in the thinned generation */
  next_generation(&t, 500, false);
  unblock(&t, 600, 2);
  start(&t, 620, 2);
  struct to_sum blocked = sum_of(&t, TO_ANALYSIS_SYNC, "blocked");
  cr_expect_eq(blocked.count, 1);
  cr_expect_eq(blocked.total_ns, 200);
  cr_expect_eq(blocked.lower_bounds, 0);
  struct to_sum latency = sum_of(&t, TO_ANALYSIS_SCHED, "latency");
  cr_expect_eq(latency.count, 1);
  cr_expect_eq(latency.total_ns, 20);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_SCHED, TO_WINDOW_ALL);
  cr_expect_eq(tt_table(r, "longest")->rows, 1, "the list has no wait that is not counted");
  tt_analyses_close(&t);
}

Test(thin, a_report_states_the_events_of_thinned_generations) {
  struct tt_analyses t;

  open_stream(&t, 2); /* 3 events */
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_SCHED, TO_WINDOW_ALL);
  cr_expect_eq(r->thinned_events, 0);
  size_t notes = r->notes;
  next_generation(&t, 200, true);
  block(&t, 300, 2);
  next_generation(&t, 400, false);
  unblock(&t, 500, 2);
  r = tt_report(&t, TO_ANALYSIS_SCHED, TO_WINDOW_ALL);
  cr_expect_eq(r->events, 7);
  cr_expect_eq(r->thinned_events, 2);
  cr_expect_eq(r->notes, notes + 1);
  cr_expect_not_null(strstr(r->note[0], "thinned"));
  r = tt_report(&t, TO_ANALYSIS_STW, TO_WINDOW_ALL);
  cr_expect_eq(r->events, 7);
  cr_expect_eq(r->thinned_events, 0, "all its figures go on");
  TT_FEED(&t, &gen1, .time = 20 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  r = tt_report(&t, TO_ANALYSIS_SCHED, TO_WINDOW_10S);
  cr_expect_eq(r->events, 1);
  cr_expect_eq(r->thinned_events, 0, "they have left this window");
  r = tt_report(&t, TO_ANALYSIS_SCHED, TO_WINDOW_ALL);
  cr_expect_eq(r->thinned_events, 2);
  tt_analyses_close(&t);
}

/* Findings as text, in the order of the sink. */
static void take_words(void *self, const struct to_finding *finding) {
  char *words = (char *)self + strlen(self);

  snprintf(words, 300, "%s since %ld of %lu: %.*s\n", to_finding_name(finding->kind),
           (long)finding->since, (unsigned long)finding->count, (int)finding->words.len,
           finding->words.data);
}

/* Three goroutines queue for a lock in three generations; a fourth one joins and leaves the queue in the second. */
static void find(bool thins, char *out) {
  struct tt_analyses t;

  out[0] = '\0';
  open_stream(&t, 5);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g);
  for (to_ns second = 1; second <= 4; second++) {
    next_generation(&t, second * SECOND, thins);
    if (second == 2) block(&t, second * SECOND + 100, 5);
    if (second == 3) unblock(&t, second * SECOND + 100, 5);
  }
  TT_FEED(&t, &gen1, .time = 5 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_assert_eq(to_analyses_generation_ends(t.a, &gen1), TB_OK);
  cr_assert_eq(to_analyses_findings(t.a, &(struct to_finding_sink){ out, take_words }), TB_OK);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CONTENTION, TO_WINDOW_ALL);
  cr_expect_eq(tt_cell(r, "convoys", 0, "longest_queue")->number, 4);
  tt_analyses_close(&t);
}

Test(thin, queues_and_findings_go_on) {
  static char counted[4096], thinned[4096];

  find(false, counted);
  find(true, thinned);
  cr_expect_str_eq(thinned, counted);
  cr_expect_not_null(strstr(counted, "convoy since 1 of 3: "), "%s", counted);
}

Test(thin, a_goroutine_that_is_first_seen_in_a_thinned_generation_has_its_entry_function) {
  struct tt_analyses t;

  open_stream(&t, 2);
  next_generation(&t, 100, true);
  block(&t, 200, 2); /* its first stack */
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_GOROUTINES, TO_WINDOW_ALL);
  bool found = false;
  for (size_t i = 0; i < tt_table(r, "by_entry")->rows && !found; i++) {
    const struct to_value *entry = tt_cell(r, "by_entry", i, "entry");
    found = !entry->none && strcmp(entry->text.data, "main.worker") == 0;
    if (found) cr_expect_eq(tt_cell(r, "by_entry", i, "alive")->number, 1);
  }
  cr_expect(found);
  tt_analyses_close(&t);
}
