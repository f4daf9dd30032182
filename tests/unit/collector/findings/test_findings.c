/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "collector/findings/findings.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN  (1000 * SECOND) /* of what is seen, by the traced program's clock */

static char dir[] = "/tmp/tc-findings-XXXXXX";
static int state = -1;
static struct tc_config config = { .findings_keep = 3600 * SECOND,
                                   .findings_max = 5,
                                   .findings_quiet = 60 * SECOND };
static struct tc_findings *findings;
static struct tc_keeps *keeps;
static struct tb_diag wrong;
static bool is_muted; /* the one that was seen last */

static void open_findings(void) {
  const struct tc_findings_env env = { &config, state, keeps };
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_findings_open(&env, &diag, &wrong, &findings), TB_OK, "%s", diag.text);
}

static void make_state(void) {
  struct tb_diag diag = { 0 };

  cr_assert_not_null(mkdtemp(dir));
  state = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(state, 0);
  cr_assert_eq(tc_keeps_open(state, &diag, &wrong, &keeps), TB_OK, "%s", diag.text);
  open_findings();
}

static void remove_state(void) {
  tc_findings_free(findings);
  tc_keeps_free(keeps);
  unlinkat(state, "findings", 0);
  close(state);
  rmdir(dir);
}

TestSuite(findings, .init = make_state, .fini = remove_state);

static struct tc_sighting leak_of(const char *service, const char *instance, const char *place) {
  struct tc_sighting s = { .kind = "leak",
                           .service = service,
                           .instance = instance,
                           .place = place,
                           .cause = "main.main:8",
                           .words = "7 goroutines may never end",
                           .gen = 41,
                           .from_ns = BEGIN,
                           .until_ns = BEGIN + 10 * SECOND,
                           .amount = 7,
                           .times = 1 };

  memset(s.stream, 0x5A, sizeof s.stream);
  return s;
}

static uint64_t see(const struct tc_sighting *sighting) {
  struct tc_seen seen;

  cr_assert_eq(tc_findings_see(findings, sighting, &seen), TB_OK);
  cr_assert_neq(seen.id, 0);
  is_muted = seen.is_muted;
  return seen.id;
}

static uint64_t see_leak(const char *service, const char *place) {
  const struct tc_sighting s = leak_of(service, "host:1", place);

  return see(&s);
}

struct shown {
  size_t n;
  struct tc_finding first, last;
};

static tb_rc take(void *self, const struct tc_finding *f) {
  struct shown *shown = self;

  if (shown->n++ == 0) shown->first = *f;
  shown->last = *f;
  return TB_OK;
}

static struct shown ask_for(const struct tc_findings_ask *ask) {
  struct shown shown = { .n = 0 };

  cr_assert_eq(tc_findings_each(findings, ask, &shown, take), TB_OK);
  return shown;
}

static struct shown all(void) {
  return ask_for(&(struct tc_findings_ask){ .service = "" });
}

/* As after a kill: nothing is written at the end. */
static void begin_again(void) {
  tc_findings_free(findings);
  open_findings();
}

static void pass(uint64_t ns) {
  tc_findings_turn(findings, tc_wall_ns() + ns, false);
}

Test(findings, one_cause_is_one_finding_however_often_and_wherever_it_is_seen) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");
  uint64_t id = see(&s);

  s.instance = "host:2";
  s.until_ns += 10 * SECOND;
  s.amount = 900;
  s.words = "900 goroutines may never end";
  cr_assert_eq(see(&s), id);
  s.times = 0;
  s.amount = 300;
  s.instance = "host:1";
  cr_assert_eq(see(&s), id);
  struct shown shown = all();
  cr_assert_eq(shown.n, 1);
  cr_assert_eq(shown.first.count, 2);
  cr_assert_eq(shown.first.peak, 900);
  cr_assert_eq(shown.first.began_ns, BEGIN);
  cr_assert_eq(shown.first.last_ns, BEGIN + 20 * SECOND);
  cr_assert_eq(shown.first.ended_ns, 0);
  cr_assert_eq(shown.first.instances, 2);
  cr_assert_str_eq(shown.first.instance[0], "host:2");
  cr_assert_str_eq(shown.first.instance[1], "host:1");
  cr_assert_eq(shown.first.times, 1);
}

Test(findings, another_kind_place_cause_or_service_is_another_finding) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");

  see(&s);
  see_leak("shop", "main.leak:13");
  see_leak("till", "main.leak:12");
  s.kind = "convoy";
  see(&s);
  s.cause = "main.other";
  see(&s);
  cr_assert_eq(all().n, 5);
  cr_assert_eq(ask_for(&(struct tc_findings_ask){ .service = "till" }).n, 1);
}

/* After a restart the trace does not have the place where goroutines were created before. */
Test(findings, one_of_unknown_cause_is_the_open_one_at_its_place) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");
  uint64_t id = see(&s);

  cr_assert(tc_findings_is_open(findings, "shop", "leak", "main.leak:12"));
  cr_assert_not(tc_findings_is_open(findings, "shop", "convoy", "main.leak:12"));
  cr_assert_not(tc_findings_is_open(findings, "till", "leak", "main.leak:12"));
  s.cause = "";
  s.unknown = "an unknown place";
  s.words = "7 goroutines may never end: created at an unknown place, they wait";
  cr_assert_eq(see(&s), id);
  cr_assert_str_eq(all().first.cause, "main.main:8");
  cr_assert_str_eq(all().first.words,
                   "7 goroutines may never end: created at main.main:8, they wait");
  s.place = "main.leak:13";
  cr_assert_neq(see(&s), id);
  cr_assert_not_null(strstr(all().first.words, "created at an unknown place"));
  pass(61 * SECOND);
  cr_assert_not(tc_findings_is_open(findings, "shop", "leak", "main.leak:12"));
}

Test(findings, a_finding_that_nobody_shows_any_more_has_ended_when_it_was_last_seen) {
  uint64_t id = see_leak("shop", "main.leak:12");

  pass(50 * SECOND);
  cr_assert_eq(all().first.ended_ns, 0);
  pass(61 * SECOND);
  cr_assert_eq(all().first.ended_ns, BEGIN + 10 * SECOND);
  cr_assert_eq(ask_for(&(struct tc_findings_ask){ .service = "", .is_open = true }).n, 0);

  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");
  s.from_ns = BEGIN + 500 * SECOND;
  s.until_ns = BEGIN + 510 * SECOND;
  s.gen = 99;
  cr_assert_eq(see(&s), id, "it is the same one");
  struct tc_finding f = all().first;
  cr_assert_eq(f.ended_ns, 0, "and open again");
  cr_assert_eq(f.count, 2);
  cr_assert_eq(f.began_ns, BEGIN);
  cr_assert_eq(f.gen, 99, "the newest part of the trace expires last");
  cr_assert_eq(f.times, 2);
  cr_assert_eq(f.time[0].last_ns, BEGIN + 10 * SECOND);
  cr_assert_eq(f.time[1].began_ns, BEGIN + 500 * SECOND);
}

Test(findings, what_ended_long_ago_is_forgotten_and_what_is_open_is_not) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");

  see(&s);
  pass(61 * SECOND);
  see_leak("till", "main.leak:12");
  pass(59 * SECOND);
  cr_assert_eq(all().n, 2);
  pass(3601 * SECOND);
  cr_assert_eq(all().n, 0, "both have ended that long ago");
}

Test(findings, are_the_same_after_a_kill) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");
  struct tc_finding muted;

  s.words = "a name\nwith\tall in it";
  uint64_t id = see(&s);
  cr_assert_eq(tc_findings_mute(findings, id, UINT64_MAX, "known, see 812", &muted), TB_OK);
  see_leak("till", "");
  struct tc_finding before = ask_for(&(struct tc_findings_ask){ .service = "shop" }).first;
  pass(SECOND);
  begin_again();
  cr_assert_eq(wrong.rc, TB_OK, "%s", wrong.text);
  struct shown shown = ask_for(&(struct tc_findings_ask){ .service = "shop" });
  cr_assert_eq(shown.n, 1);
  cr_assert_geq(shown.first.seen_ns, before.seen_ns);
  cr_assert_eq(shown.first.read_last_ns, before.last_ns);
  shown.first.seen_ns = before.seen_ns;
  shown.first.read_last_ns = 0;
  cr_assert_arr_eq(&shown.first, &before, sizeof before);
  cr_assert_str_eq(before.words, "a name?with?all in it");
  cr_assert_str_eq(before.mute_reason, "known, see 812");
  cr_assert_eq(see(&s), id, "its id is the same");
}

Test(findings, an_open_one_has_time_to_be_seen_again_after_a_restart) {
  see_leak("shop", "main.leak:12");
  pass(SECOND);
  begin_again();
  pass(59 * SECOND);
  cr_assert_eq(all().first.ended_ns, 0);
  pass(61 * SECOND);
  cr_assert_neq(all().first.ended_ns, 0);
}

Test(findings, a_change_that_can_wait_is_not_written_at_once) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");

  see(&s);
  pass(SECOND);
  s.times = 0;
  s.amount = 8;
  s.until_ns += SECOND;
  see(&s);
  pass(SECOND);
  begin_again();
  cr_assert_eq(all().first.peak, 7);
  see(&s);
  tc_findings_turn(findings, tc_wall_ns(), true);
  begin_again();
  cr_assert_eq(all().first.peak, 8, "the last turn writes all");
}

Test(findings, wrong_lines_are_skipped_and_a_torn_file_leaves_what_is_whole) {
  struct tb_diag diag = { 0 };
  char text[4096], place[16];

  for (int i = 0; i < 3; i++) {
    snprintf(place, sizeof place, "main.leak:%d", i);
    see_leak("shop", place);
  }
  pass(SECOND);
  int fd = openat(state, "findings", O_RDONLY);
  ssize_t n = pread(fd, text, sizeof text, 0);
  close(fd);
  cr_assert_gt(n, 0);
  for (size_t cut = 0; cut < (size_t)n; cut++) {
    cr_assert_eq(tc_file_replace(state, "findings", text, cut, &diag), TB_OK);
    begin_again();
    cr_assert_leq(all().n, 3);
  }
  cr_assert_eq(wrong.rc, TB_OK, "only the last newline is missing");
  cr_assert_eq(all().n, 3);
  cr_assert_eq(tc_file_replace(state, "findings", text, (size_t)n - 5, &diag), TB_OK);
  begin_again();
  cr_assert_eq(wrong.rc, TB_BROKEN);
  cr_assert_not_null(strstr(wrong.text, "findings line 3"), "%s", wrong.text);
  cr_assert_eq(all().n, 2);
}

Test(findings, of_a_service_that_has_its_share_the_one_that_ended_first_goes) {
  char place[16];

  for (int i = 0; i < 5; i++) {
    snprintf(place, sizeof place, "main.leak:%d", i);
    see_leak("shop", place);
    if (i == 2) pass(61 * SECOND);
  }
  see_leak("till", "main.leak:0");
  see_leak("shop", "main.leak:5");
  cr_assert_eq(all().n, 6);
  cr_assert_eq(ask_for(&(struct tc_findings_ask){ .service = "shop" }).n, 5);
  cr_assert_eq(ask_for(&(struct tc_findings_ask){ .service = "shop", .is_open = true }).n, 3,
               "the new one too");
}

Test(findings, many_services_take_nothing_from_those_with_few) {
  char service[16], place[16];

  config.findings_max = 500;
  see_leak("first", "main.leak:1");
  for (int i = 0; i < TC_FINDINGS_MAX; i++) {
    snprintf(service, sizeof service, "s%d", i % 9);
    snprintf(place, sizeof place, "main.leak:%d", i);
    see_leak(service, place);
  }
  cr_assert_eq(all().n, TC_FINDINGS_MAX);
  cr_assert_eq(ask_for(&(struct tc_findings_ask){ .service = "first" }).n, 1);
  tc_findings_turn(findings, tc_wall_ns(), true);
  begin_again();
  cr_assert_eq(wrong.rc, TB_OK, "%s", wrong.text);
  cr_assert_eq(all().n, TC_FINDINGS_MAX);
}

Test(findings, a_mute_is_for_one_that_there_is) {
  struct tc_finding f;
  uint64_t id = see_leak("shop", "main.leak:12"), now = tc_wall_ns();

  cr_assert_eq(tc_findings_mute(findings, id + 1, now + SECOND, "why", &f), TB_NOTFOUND);
  cr_assert_not(is_muted);
  cr_assert_eq(tc_findings_mute(findings, id, now + 60 * SECOND, "why", &f), TB_OK);
  cr_assert_eq(see_leak("shop", "main.leak:12"), id);
  cr_assert(is_muted);
  cr_assert(tc_finding_is_muted(&f, now));
  cr_assert_not(tc_finding_is_muted(&f, now + 60 * SECOND));
  cr_assert_eq(tc_findings_mute(findings, id, 0, "why", &f), TB_OK);
  cr_assert_str_eq(f.mute_reason, "");
}

static bool keeps_from(uint64_t from_ns, uint64_t until_ns) {
  const struct tc_sighting s = leak_of("shop", "host:1", "");
  char rule[TC_KEEP_RULE_MAX + 1] = "";

  bool is_met = tc_keeps_meets(keeps, s.stream, "shop", from_ns, until_ns, rule);
  cr_assert_str_eq(rule, is_met ? "finding.leak" : "");
  return is_met;
}

Test(findings, the_trace_is_kept_where_one_begins_and_not_while_it_goes_on) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:12");

  see(&s);
  cr_assert(keeps_from(0, BEGIN - 80 * SECOND));
  cr_assert_not(keeps_from(0, BEGIN - 80 * SECOND - 1));
  cr_assert(keeps_from(BEGIN + 20 * SECOND, UINT64_MAX));
  cr_assert_not(keeps_from(BEGIN + 20 * SECOND + 1, UINT64_MAX));
  s.until_ns += 600 * SECOND;
  s.times = 0;
  see(&s);
  cr_assert_eq(tc_keeps_count(keeps), 1);
  pass(61 * SECOND);
  see(&s);
  cr_assert(keeps_from(BEGIN + 610 * SECOND, UINT64_MAX), "it began again");
  cr_assert_not(keeps_from(BEGIN + 21 * SECOND, BEGIN + 519 * SECOND), "90 s before");
}

Test(findings, open_ones_come_first_then_the_newest) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.leak:1");

  s.until_ns += 900 * SECOND;
  see(&s);
  pass(61 * SECOND);
  s = leak_of("shop", "host:1", "main.leak:2");
  see(&s);
  s = leak_of("shop", "host:1", "main.leak:3");
  s.until_ns += SECOND;
  see(&s);
  struct shown shown = all();
  cr_assert_str_eq(shown.first.place, "main.leak:3");
  cr_assert_str_eq(shown.last.place, "main.leak:1");
  const struct tc_findings_ask since = { .service = "", .since_ns = BEGIN + 11 * SECOND };
  cr_assert_eq(ask_for(&since).n, 2);
}

static struct tc_sighting convoy_of(uint64_t from_ns, uint64_t goroutines, const char *words,
                                    const char *why) {
  struct tc_sighting s = leak_of("shop", "host:1", "main.add:64");

  s.kind = "convoy";
  s.words = words;
  s.why = why;
  s.from_ns = from_ns;
  s.until_ns = from_ns + SECOND;
  s.amount = goroutines;
  return s;
}

static void expect_words(const char *words, uint64_t from_ns) {
  struct shown shown = all();
  struct tc_part part;

  tc_part_times(&part, false, from_ns, from_ns + SECOND);
  cr_expect_str_eq(shown.first.words, words);
  cr_expect_eq(shown.first.from_ns, part.from_ns, "the part of the trace fits the words");
}

Test(findings, what_explains_one_stays_until_something_explains_it_as_well) {
  const uint64_t first = 1000 * SECOND;
  struct tc_sighting s = convoy_of(first, 5, "they wait", "");

  see(&s);
  expect_words("they wait", first);
  s = convoy_of(first + SECOND, 9, "rebuild holds it", "goroutine=27&ns=1");
  s.times = 0;
  see(&s);
  expect_words("rebuild holds it", first + SECOND);
  s = convoy_of(first + 2 * SECOND, 10, "they wait", NULL);
  see(&s);
  expect_words("rebuild holds it", first + SECOND);
  s = convoy_of(first + 3 * SECOND, 3, "mail holds it", "goroutine=28&ns=1");
  see(&s);
  expect_words("rebuild holds it", first + SECOND);
  s = convoy_of(first + 4 * SECOND, 12, "rebuild holds it for long", "goroutine=27&ns=2");
  see(&s);
  expect_words("rebuild holds it for long", first + 4 * SECOND);
}

Test(findings, what_a_restarted_collector_reads_again_is_not_seen_twice) {
  const uint64_t first = 1000 * SECOND;
  struct tc_sighting s = convoy_of(first, 5, "they wait", NULL);

  see(&s);
  s = convoy_of(first + 5 * SECOND, 7, "they wait", NULL);
  see(&s);
  pass(2 * config.findings_quiet);
  begin_again();
  struct tc_finding before = all().first;
  cr_assert_neq(before.ended_ns, 0);
  s = convoy_of(first, 5, "they wait", NULL);
  see(&s);
  s = convoy_of(first + 5 * SECOND, 7, "they wait", NULL);
  see(&s);
  struct tc_finding after = all().first;
  cr_expect_eq(after.count, before.count);
  cr_expect_eq(after.ended_ns, before.ended_ns);
  cr_expect_eq(after.times, before.times);
  s = convoy_of(first + 9 * SECOND, 7, "they wait", NULL);
  see(&s);
  cr_expect_eq(all().first.count, before.count + 1);
  cr_expect_eq(all().first.ended_ns, 0, "it has begun again");
}
