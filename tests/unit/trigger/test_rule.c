/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "trigger/rule.h"

static struct tr_rules *rules(void) {
  struct tr_rules *r;

  cr_assert_eq(tr_rules_new(&r), TB_OK);
  return r;
}

static const struct tr_rule *taken(struct tr_rules *r, const char *text) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tr_rules_add(r, text, &diag), TB_OK, "%s: %s", text, diag.text);
  return tr_rules_at(r, tr_rules_count(r) - 1);
}

static void refused(const char *text, const char *why) {
  struct tr_rules *r = rules();
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tr_rules_add(r, text, &diag), TB_BROKEN, "%s", text);
  cr_assert_not_null(strstr(diag.text, why), "%s: %s", text, diag.text);
  cr_assert_eq(tr_rules_count(r), 0);
  tr_rules_release(r);
}

Test(rule, says_what_where_how_long_and_what_then) {
  struct tr_rules *r = rules();
  const struct tr_rule *rule =
      taken(r, "TRIGGER slow WHEN sched.latency.p99 > 50ms AND finding starved OF shop-*/a:1 IN 1m "
               "FOR 3 GENERATIONS DO snap service last 30s, alert");

  cr_assert_str_eq(rule->name, "slow");
  cr_assert_str_eq(rule->text,
                   "slow WHEN sched.latency.p99 > 50ms AND finding starved OF shop-*/a:1 "
                   "IN 1m FOR 3 GENERATIONS DO snap service last 30s, alert");
  cr_assert_eq(rule->terms, 2);
  cr_assert_eq(rule->term[0].kind, TO_ANALYSIS_SCHED);
  cr_assert_eq(rule->term[0].condition.value, 50e6);
  cr_assert(rule->term[1].is_finding);
  cr_assert_eq(rule->term[1].finding, TO_FINDING_STARVED);
  cr_assert_eq(rule->window, TO_WINDOW_1MIN);
  cr_assert_eq(rule->generations, 3);
  cr_assert(rule->alert);
  cr_assert_eq(rule->snap, TR_REACH_SERVICE);
  cr_assert_eq(rule->snap_last_ns, 30000000000);
  cr_assert(tr_rule_is_about(rule, "shop-2", "a:1"));
  cr_assert(tr_rule_is_about(rule, "shop-2", NULL));
  cr_assert_not(tr_rule_is_about(rule, "shop", "a:1"));
  cr_assert_not(tr_rule_is_about(rule, "shop-2", "a:10"));
  tr_rules_release(r);
}

Test(rule, names_what_the_helper_does) {
  struct tr_rules *r = rules();
  struct tb_diag diag;

  cr_assert_str_eq(
      taken(r, "a WHEN finding leak DO exec page, alert, webhook page, exec ops:1")->actions,
      "exec:page,webhook:page,exec:ops:1");
  cr_assert_str_eq(taken(r, "b WHEN finding leak DO alert")->actions, "");
  tb_diag_clear(&diag);
  cr_assert_eq(tr_rules_add_by_hand(r, "c WHEN finding leak DO alert, exec page", &diag),
               TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "c: DO: exec is for rules of the file trigger.file"));
  cr_assert_eq(tr_rules_add_by_hand(r, "c WHEN finding leak DO alert, keep", &diag), TB_OK);
  tr_rules_release(r);
  refused("a WHEN finding leak DO exec", "exec: \"the end\" is not a name of an action");
  refused("a WHEN finding leak DO exec , alert", "exec: \",\" is not a name of an action");
  refused("a WHEN finding leak DO webhook a/b", "webhook: \"a/b\" is not a name of an action");
  refused("a WHEN finding leak DO exec p, exec page, exec p", "exec p appears twice");
  refused("a WHEN finding leak DO exec a, exec b, exec c, exec d, exec e, exec f, exec g, exec h, "
          "exec i",
          "more than 8 exec and webhook actions");
}

Test(rule, snaps_and_helpers_have_a_pace_each) {
  struct tr_rules *r = rules();
  const struct tr_rule *rule =
      taken(r, "a WHEN finding leak DO exec page every 5m, webhook chat max 20 an hour every 0s, "
               "alert, exec b, snap all last 30s Max 0 An Hour");

  cr_assert_str_eq(rule->actions, "exec:page,webhook:chat,exec:b");
  cr_assert(rule->action_pace[0].has_every && !rule->action_pace[0].has_hour_max);
  cr_assert_eq(rule->action_pace[0].every_ns, UINT64_C(300000000000));
  cr_assert(rule->action_pace[1].has_every && rule->action_pace[1].has_hour_max);
  cr_assert_eq(rule->action_pace[1].every_ns, 0);
  cr_assert_eq(rule->action_pace[1].hour_max, 20);
  cr_assert(!rule->action_pace[2].has_every && !rule->action_pace[2].has_hour_max);
  cr_assert(!rule->snap_pace.has_every && rule->snap_pace.has_hour_max);
  cr_assert_eq(rule->snap_pace.hour_max, 0);
  tr_rules_release(r);
  refused("a WHEN finding leak DO exec p every", "\"the end\" is not a time");
  refused("a WHEN finding leak DO exec p every 25h", "of at most a day");
  refused("a WHEN finding leak DO exec p every 1s every 1s", "every appears twice");
  refused("a WHEN finding leak DO snap max -1 an hour", "\"-1\" is not a number from 0 to 1000000");
  refused("a WHEN finding leak DO snap max 1 a hour", "expected an, not \"a\"");
  refused("a WHEN finding leak DO snap max 1", "an is missing at the end");
  refused("a WHEN finding leak DO alert every 1m", "unexpected \"every\" after an action");
}

Test(rule, the_least_is_a_condition_and_an_action) {
  struct tr_rules *r = rules();
  const struct tr_rule *rule = taken(r, "s when stw.wall_share>1% do snap");

  cr_assert_eq(rule->window, TO_WINDOW_10S);
  cr_assert_eq(rule->generations, 1);
  cr_assert_eq(rule->snap, TR_REACH_STREAM);
  cr_assert_eq(rule->snap_last_ns, 0);
  cr_assert_not(rule->alert);
  cr_assert(tr_rule_is_about(rule, "any", "thing"));
  cr_assert_eq(taken(r, "a when finding leak for 1 generation in all of x do snap all")->snap,
               TR_REACH_ALL);
  tr_rules_release(r);
}

Test(rule, keep_has_a_reach_and_two_sides) {
  static const struct {
    const char *action;
    enum tr_reach reach;
    uint64_t before_s, after_s;
    bool alert;
  } cases[] = {
    { "keep", TR_REACH_STREAM, 30, 10, false },
    { "keep 1m before, 5s after", TR_REACH_STREAM, 60, 5, false },
    { "keep 1m before 5s after, alert", TR_REACH_STREAM, 60, 5, true },
    { "keep service 0s after, alert", TR_REACH_SERVICE, 30, 0, true },
    { "alert, keep all 5s after, 1h before", TR_REACH_ALL, 3600, 5, true },
    { "keep stream, alert", TR_REACH_STREAM, 30, 10, true },
  };
  char text[200], name = 'a';
  struct tr_rules *r = rules();

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(text, sizeof text, "%c WHEN finding leak DO %s", name++, cases[i].action);
    const struct tr_rule *rule = taken(r, text);
    cr_assert_eq(rule->keep, cases[i].reach, "%s", text);
    cr_assert_eq(rule->keep_before_ns, cases[i].before_s * 1000000000, "%s", text);
    cr_assert_eq(rule->keep_after_ns, cases[i].after_s * 1000000000, "%s", text);
    cr_assert_eq(rule->alert, cases[i].alert, "%s", text);
  }
  tr_rules_release(r);
}

Test(rule, what_is_wrong_is_named) {
  refused("", "\"the end\" is not a name");
  refused("a/b WHEN", "\"a/b\" is not a name");
  refused("finding.leak WHEN finding leak DO keep",
          "rename \"finding.leak\": names that begin with finding. are taken");
  refused("alert.slow WHEN finding leak DO alert",
          "rename \"alert.slow\": only rules that are built in begin with alert.");
  refused("slow", "WHEN is missing at the end (NAME WHEN CONDITION DO ACTION)");
  refused("slow WHN stw.wall_share > 1% DO alert", "slow: expected WHEN, not \"WHN\"");
  refused("slow WHEN DO alert", "expected a condition, not \"DO\"");
  refused("slow WHEN stw.wall_shar > 1% DO alert",
          "no figure \"stw.wall_shar\"; near: stw.wall_share");
  refused("slow WHEN sched.latency.p99 > 50 DO alert", "a time needs a unit");
  refused("slow WHEN finding deadlok DO alert", "did you mean \"deadlock\"?");
  refused("slow WHEN finding DO alert", "there are deadlock, convoy");
  refused("slow WHEN stw.wall_share > 1%", "DO is missing at the end");
  refused("slow WHEN stw.wall_share > 1% DO", "\"the end\" is not an action: alert, keep, snap");
  refused("slow WHEN stw.wall_share > 1% DO keep, keep", "keep appears twice");
  refused("slow WHEN stw.wall_share > 1% DO keep 30 before", "\"30\" is not a time");
  refused("slow WHEN stw.wall_share > 1% DO keep 25h before", "of at most a day");
  refused("slow WHEN stw.wall_share > 1% DO keep 30s", "expected before or after, not \"the end\"");
  refused("slow WHEN stw.wall_share > 1% DO keep 3s before, 4s before",
          "keep: before appears twice");
  refused("slow WHEN stw.wall_share > 1% DO keep 3s before, alert 4s", "unexpected \"4s\"");
  refused("slow WHEN stw.wall_share > 1% DO alrt", "did you mean \"alert\"?");
  refused("slow WHEN stw.wall_share > 1% DO alert snap", "unexpected \"snap\"");
  refused("slow WHEN stw.wall_share > 1% DO snap, snap all", "snap appears twice");
  refused("slow WHEN stw.wall_share > 1% DO snap last 30", "\"30\" is not a time");
  refused("slow WHEN stw.wall_share > 1% FOR 0 GENERATIONS DO alert", "\"0\" is not a number");
  refused("slow WHEN stw.wall_share > 1% FOR -1 GENERATIONS DO alert", "\"-1\" is not a number");
  refused("slow WHEN stw.wall_share > 1% FOR 2 DO alert", "expected GENERATIONS, not \"DO\"");
  refused("slow WHEN stw.wall_share > 1% FOR 2 GENERATIONS IN 2m DO alert",
          "\"2m\" is not a window");
  refused("slow WHEN stw.wall_share > 1% OF a OF b DO alert", "OF appears twice");
  refused("slow WHEN stw.wall_share > 1% OF a*b DO alert", "\"a*b\" is not a name of a service");
  refused("slow WHEN stw.wall_share > 1% OF a/ DO alert", "is not a name of an instance");
  refused("slow WHEN stw.wall_share > 1% DO alert\nx WHEN finding leak DO alert",
          "control character");
  refused("a WHEN finding leak AND finding leak AND finding leak AND finding leak AND finding leak "
          "DO alert",
          "more than 4 conditions");
}

Test(rule, lines_are_numbered_and_names_stand_once) {
  struct tr_rules *r = rules();
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tr_rules_add_lines(
                   r, "FILE",
                   "# first\n\n  a WHEN finding leak DO alert\r\nb WHEN finding stall DO alert",
                   &diag),
               TB_OK, "%s", diag.text);
  cr_assert_eq(tr_rules_count(r), 2);
  cr_assert_eq(tr_rules_add_lines(r, "FILE", "#\na WHEN finding leak DO alert\n", &diag),
               TB_BROKEN);
  cr_assert_str_eq(diag.text, "FILE line 2: a: there is a rule \"a\" already");
  tr_rules_release(r);
}

Test(rule, there_is_an_end_to_rules_and_to_their_length) {
  struct tr_rules *r = rules();
  char text[TR_RULE_TEXT_MAX + 64];
  struct tb_diag diag;

  for (unsigned i = 0; i < TR_RULES_MAX; i++) {
    snprintf(text, sizeof text, "r%u WHEN finding leak DO alert", i);
    taken(r, text);
  }
  tb_diag_clear(&diag);
  cr_assert_eq(tr_rules_add(r, "one-more WHEN finding leak DO alert", &diag), TB_BUDGET);
  tr_rules_release(r);
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  refused(text, "at most 1024 bytes");
  text[300] = '\0';
  refused(text, "is too long for a word");
}
