/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "trigger/watch.h"
#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

static const struct to_generation gen = { .number = 1, .string = { [1] = "GC mark termination" } };

struct stage {
  struct tt_analyses t;
  struct tr_rules *rules;
  struct tr_watch *watch;
  to_ns now;
  unsigned fired;
  char name[TR_NAME_MAX + 1], words[TR_WORDS_MAX];
};

static void on_fired(void *self, const struct tr_fired *fired) {
  struct stage *s = self;

  s->fired++;
  strcpy(s->name, fired->rule->name);
  strcpy(s->words, fired->words);
}

static void event(struct stage *s, enum tw_event type, uint64_t arg) {
  s->now += SECOND / 4;
  TT_FEED(&s->t, &gen, .time = s->now, .m = 1, .p = 0, .g = 5, .type = type, .args = { arg });
}

static void set_up(struct stage *s, const char *rules) {
  struct tb_diag diag;

  *s = (struct stage){ .now = SECOND };
  tb_diag_clear(&diag);
  tt_analyses_open(&s->t, 1, 100);
  cr_assert_eq(tr_rules_new(&s->rules), TB_OK);
  cr_assert_eq(tr_rules_add_lines(s->rules, "rules", rules, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tr_watch_new(&s->t.mem, s->rules, "shop", "a", &s->watch), TB_OK);
  TT_FEED(&s->t, &gen, .time = s->now, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void tear_down(struct stage *s) {
  tr_watch_free(s->watch);
  tr_rules_release(s->rules);
  tt_analyses_close(&s->t);
}

/* Returns how many rules fired. */
static unsigned generation(struct stage *s) {
  s->fired = 0;
  cr_assert_eq(tr_watch_generation(s->watch, s->t.a, &(struct tr_fired_sink){ s, on_fired }),
               TB_OK);
  return s->fired;
}

Test(watch, a_rule_fires_once_as_long_as_it_is_met) {
  struct stage s;

  set_up(&s, "stopped WHEN stw.by_reason.open > 0 FOR 2 GENERATIONS DO alert");
  cr_assert_eq(generation(&s), 0);
  event(&s, TW_EV_STW_BEGIN, 1);
  cr_assert_eq(generation(&s), 0, "one generation is not two");
  cr_assert_eq(generation(&s), 1);
  cr_assert_str_eq(s.name, "stopped");
  cr_assert_str_eq(s.words, "stw.by_reason.open is 1, for 2 generations");
  cr_assert_eq(generation(&s), 0, "it goes on");
  event(&s, TW_EV_STW_END, 0);
  cr_assert_eq(generation(&s), 0);
  event(&s, TW_EV_STW_BEGIN, 1);
  cr_assert_eq(generation(&s), 0);
  cr_assert_eq(generation(&s), 1, "it was not met meanwhile");
  tear_down(&s);
}

Test(watch, a_hole_ends_a_row) {
  struct stage s;

  set_up(&s, "stopped WHEN stw.by_reason.open > 0 FOR 2 GENERATIONS DO alert");
  event(&s, TW_EV_STW_BEGIN, 1);
  cr_assert_eq(generation(&s), 0);
  tr_watch_hole(s.watch);
  cr_assert_eq(generation(&s), 0);
  cr_assert_eq(generation(&s), 1);
  tear_down(&s);
}

Test(watch, all_conditions_of_a_rule_and_each_in_its_window) {
  struct stage s;

  set_up(&s, "both WHEN stw.stopped.p99 >= 250ms AND stw.by_reason == 1 IN all DO alert\n"
             "never WHEN stw.stopped.p99 >= 250ms AND stw.by_reason == 2 DO alert\n"
             "soon WHEN stw.stopped.count == 1 AND sched.latency.count == 0 DO alert\n");
  event(&s, TW_EV_STW_BEGIN, 1);
  event(&s, TW_EV_STW_END, 0);
  cr_assert_eq(generation(&s), 2);
  cr_assert_str_eq(s.words, "stw.stopped.count is 1 and sched.latency.count is 0");
  tear_down(&s);
}

Test(watch, a_figure_that_is_not_known_does_not_meet_a_condition) {
  struct stage s;

  set_up(&s, "less WHEN heap.live_objects < 1 DO alert\nmore WHEN heap.live_objects >= 0 DO alert\n"
             "flag WHEN heap.has_objects == 0 DO alert");
  event(&s, TW_EV_STW_BEGIN, 1);
  cr_assert_eq(generation(&s), 1);
  cr_assert_str_eq(s.name, "flag");
  tear_down(&s);
}

Test(watch, rules_about_others_are_left_out) {
  struct stage s;

  set_up(&s, "till WHEN stw.by_reason == 0 OF till DO alert\nshop WHEN stw.by_reason == 0 OF "
             "shop/a DO alert");
  cr_assert_eq(generation(&s), 1);
  cr_assert_str_eq(s.name, "shop");
  tear_down(&s);
}
