/* SPDX-License-Identifier: Apache-2.0 */
/* K12, F13, E11: tracepoints recorded into the trace, as logs and as events of an experiment,
 * with their place in the code. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "noted.trace.h"
#include "tests/unit/agent/emit/emit_reported.h"
#include "traceexperiment.h"

//trace:event sold(const char *what, int cents)
//trace:event weighed(double grams)
//trace:event closed()
//trace:event packed(const char *box, int w, int h, int d)
//trace:event shipped(const char *to, long n, _Bool fast, double cost, const char *by)
//trace:event a_name_that_is_longer_than_an_experiment_has_room(int n)
//trace:event argument(int an_argument_whose_name_is_longer_than_a_label, int _under)

static int line;

__attribute__((noinline)) static void sell(const char *what) {
  line = __LINE__ + 1;
  sold(what, -5);
  __asm__ volatile("");
}

static struct ta_probe_group group;

static void attach(int (*attach)(struct ta_probe_group *group, struct ta_tracepoint *at,
                                 struct ta_probe *probe)) {
  static struct ta_probe probes[6];
  struct ta_tracepoint *const points[] = { sold_point(),   weighed_point(), closed_point(),
                                           packed_point(), shipped_point(), argument_point() };

  ta_lock();
  for (size_t i = 0; i < sizeof points / sizeof *points; i++)
    cr_assert_eq(attach(&group, points[i], &probes[i]), 0, "%s", ta_strerror(TA_E_CONFIG));
  ta_unlock();
}

__attribute__((noinline)) static void sell_one(void) {
  sell("bread");
  __asm__ volatile("");
}

static void expect_line(const char *event, struct ta_emit_config config) {
  char words[200];

  sell_one();
  snprintf(words, sizeof words,
           "%s < sell test_emit_points.c:%d < sell_one test_emit_points.c:", event, line);
  emit_until_reported(sell_one, config, words);
}

Test(emit_points, a_log_stands_where_the_program_signals) {
  attach(ta_record_attach);
  expect_line("UserLog", (struct ta_emit_config){ .stack_depth = 8 });
  expect_line("UserLog", (struct ta_emit_config){ .stack_depth = 8, .stack_tables = 1 });
}

Test(emit_points, an_event_stands_where_the_program_signals) {
  attach(ta_record_event_attach);
  expect_line("sold what_string=bread cents_value=-5", (struct ta_emit_config){ .stack_depth = 8 });
  expect_line("sold what_string=bread cents_value=-5",
              (struct ta_emit_config){ .stack_depth = 8, .stack_tables = 1 });
}

/* A probe that passes the tracepoint itself; the recording probe comes after it. */
static void sell_more(void *self, const struct ta_call *call) {
  (void)self;
  if (strcmp(call->args[0].is.text, "bread") == 0) sell("butter");
  __asm__ volatile("");
}

Test(emit_points, an_event_within_a_probe_stands_there_and_the_outer_one_where_it_was) {
  static struct ta_probe more, recorded;

  ta_lock();
  ta_call_attach(&group, sold_point(), &more, sell_more, NULL);
  ta_record_event_attach(&group, sold_point(), &recorded);
  ta_unlock();
  struct ta_emit_config config = { .stack_depth = 8 };
  char words[100];
  sell_one();
  snprintf(words, sizeof words, "butter cents_value=-5 < sell test_emit_points.c:%d < sell_more ",
           line);
  emit_until_reported(sell_one, config, words);
  expect_line("sold what_string=bread cents_value=-5", config);
}

static char *reported_of(void (*run)(void)) {
  struct emitted e;

  emit_reported_begin(&e, (struct ta_emit_config){ 0 });
  run();
  return emit_reported_end(&e);
}

static void signal_all(void) {
  sell("milk");
  weighed(0.5);
  ta_wait_begin(TA_WAIT_MUTEX);
  closed();
  ta_wait_end();
  emit_end_generation();
  packed(NULL, 1, 2, 3);
  shipped("JP", 7, 1, 2.5, "rail");
  argument(1, 2);
}

Test(emit_points, arguments_are_typed_and_what_does_not_fit_is_text) {
  attach(ta_record_event_attach);
  char *reported = reported_of(signal_all);
  const char *const lines[] = { "\nsold what_string=milk cents_value=-5\n",
                                "\nweighed grams_real=4602678819172646912\n",
                                "\nclosed\n",
                                "\npacked box_string= w_value=1 h_value=2 d_value=3\n",
                                "\nshipped to_string=JP n_value=7 fast_value=1 "
                                "more_string=cost=2.5 by=\"rail\"\n",
                                "arg0_value=1 under_value=2" };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    cr_expect_not_null(strstr(reported, lines[i]), "%s is not in%s", lines[i], reported);
  free(reported);
  ta_probe_group_done(&group);
  reported = reported_of(signal_all);
  cr_expect_null(strstr(reported, "sold"));
  free(reported);
}

Test(emit_points, a_name_that_is_too_long_is_refused_in_words) {
  static struct ta_probe probe;

  ta_lock();
  cr_assert_eq(ta_record_event_attach(
                   &group, a_name_that_is_longer_than_an_experiment_has_room_point(), &probe),
               TA_E_CONFIG);
  cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), "too long"));
  ta_unlock();
}

/* Events of the test's own experiment. */
static ta_event here[1];

__attribute__((noinline)) static void emit_here(void) {
  line = __LINE__ + 1;
  ta_experiment_emit(here[0], 4, TA_STACK_HERE, 0, 0);
  __asm__ volatile("");
}

Test(emit_points, a_stack_argument_may_be_who_calls) {
  char words[100];

  cr_assert_eq(
      ta_experiment_register("experiment Here\nevent Here n_value from_stack\n", NULL, here, 1), 0);
  emit_here();
  snprintf(words, sizeof words, "Here n_value=4 < emit_here test_emit_points.c:%d < ", line);
  emit_until_reported(emit_here, (struct ta_emit_config){ .stack_depth = 8 }, words);
  char *reported = reported_of(emit_here);
  cr_assert_not_null(strstr(reported, "\nHere n_value=4"));
  cr_assert_null(strstr(reported, "n_value=4 <"));
  free(reported);
}
