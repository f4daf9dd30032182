/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "collector/trigger/firings.h"

static char dir[] = "/tmp/tc-firings-XXXXXX";
static int state = -1;
static struct tc_firings *firings;
static struct tb_diag wrong;

static void open_firings(void) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_firings_open(state, &diag, &wrong, &firings), TB_OK, "%s", diag.text);
}

static void make_state(void) {
  cr_assert_not_null(mkdtemp(dir));
  state = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(state, 0);
  open_firings();
}

static void remove_state(void) {
  tc_firings_free(firings);
  unlinkat(state, "firings", 0);
  close(state);
  rmdir(dir);
}

TestSuite(firings, .init = make_state, .fini = remove_state);

static void add_of(const char *rule, uint64_t gen, const char *actions, const char *limited,
                   const char *words) {
  struct tc_firing firing = { .wall_ns = 1000 + gen,
                              .gen = gen,
                              .rule = rule,
                              .service = "shop",
                              .instance = "host:1",
                              .words = words,
                              .actions = actions,
                              .limited = limited };

  memset(firing.stream, 0x5A, sizeof firing.stream);
  cr_assert_eq(tc_firings_add(firings, &firing), TB_OK);
}

static void add(uint64_t gen, const char *actions, const char *words) {
  add_of("slow", gen, actions, "", words);
}

static void save(void) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_firings_save(firings, &diag), TB_OK, "%s", diag.text);
}

static void begin_again(void) {
  tc_firings_free(firings);
  open_firings();
}

struct seen {
  size_t n, most, of_rare, to_do;
  uint64_t first_gen, last_gen, last_id;
  char words[64], actions[64], limited[64];
};

static tb_rc see(void *self, const struct tc_firing *firing) {
  struct seen *seen = self;

  cr_assert_gt(firing->id, seen->last_id);
  cr_assert_eq(firing->wall_ns, 1000 + firing->gen);
  cr_assert_eq(firing->stream[15], 0x5A);
  seen->of_rare += strcmp(firing->rule, "rare") == 0 ? 1 : 0;
  seen->to_do += firing->actions[0] != '\0' ? 1 : 0;
  cr_assert_str_eq(firing->service, "shop");
  cr_assert_str_eq(firing->instance, "host:1");
  if (seen->n++ == 0) seen->first_gen = firing->gen;
  seen->last_gen = firing->gen;
  seen->last_id = firing->id;
  snprintf(seen->words, sizeof seen->words, "%s", firing->words);
  snprintf(seen->actions, sizeof seen->actions, "%s", firing->actions);
  snprintf(seen->limited, sizeof seen->limited, "%s", firing->limited);
  return seen->n == seen->most ? TB_END : TB_OK;
}

static struct seen asked(const struct tc_firings_ask *ask, size_t most) {
  struct seen seen = { .most = most };

  cr_assert_eq(tc_firings_each(firings, ask, &seen, see), most != 0 ? TB_END : TB_OK);
  return seen;
}

static struct seen all_after(uint64_t after, size_t most) {
  const struct tc_firings_ask ask = { .after = after, .rule = "" };

  return asked(&ask, most);
}

Test(firings, are_the_same_after_a_restart) {
  uint64_t before = tc_wall_ns();

  add(1, "", "sched.latency.p99 is 61.304 ms");
  add(2, "exec:page,webhook:chat", "a name\nwith\x1b[31m all in it");
  cr_assert_eq(wrong.rc, TB_OK);
  save();
  begin_again();
  struct seen seen = all_after(0, 0);
  cr_assert_eq(seen.n, 2);
  cr_assert_geq(seen.last_id, before);
  cr_assert_str_eq(seen.actions, "exec:page,webhook:chat");
  cr_assert_str_eq(seen.words, "a name?with?[31m all in it");
  struct seen first = all_after(0, 1);
  cr_assert_str_eq(first.actions, "");
  cr_assert_eq(all_after(first.last_id, 0).first_gen, 2);
  cr_assert_eq(all_after(seen.last_id, 0).n, 0);
}

Test(firings, the_oldest_make_room) {
  for (uint64_t gen = 1; gen <= TC_FIRINGS_MAX + 5; gen++) add(gen, "", "");
  save();
  begin_again();
  cr_assert_eq(wrong.rc, TB_OK, "%s", wrong.text);
  struct seen seen = all_after(0, 0);
  cr_assert_eq(seen.n, TC_FIRINGS_MAX);
  cr_assert_eq(seen.first_gen, 6);
  cr_assert_eq(seen.last_gen, TC_FIRINGS_MAX + 5);
}

Test(firings, one_that_fires_all_the_time_takes_none_of_anothers) {
  uint64_t gen = 1;

  add_of("rare", gen++, "exec:page", "", "");
  add_of("slow", gen++, "exec:page", "", "");
  for (unsigned i = 0; i < 2 * TC_FIRINGS_MAX; i++) add_of("slow", gen++, "", "exec:page,snap", "");
  add_of("rare", gen++, "exec:page", "", "");
  save();
  begin_again();
  struct seen seen = all_after(0, 0);
  cr_assert_eq(seen.n, TC_FIRINGS_MAX);
  cr_assert_eq(seen.first_gen, 1);
  cr_assert_eq(seen.of_rare, 2);
  cr_assert_eq(seen.to_do, 3); /* of a rule's own firings, those to do are dropped last */
  const struct tc_firings_ask rare = { .rule = "rare" }, newest = { .rule = "", .newest = 50 },
                              each = { .rule = "", .newest = 50, .newest_of_rule = 10 };
  cr_assert_eq(asked(&rare, 0).n, 2);
  cr_assert_eq(asked(&newest, 0).of_rare, 1);
  cr_assert_eq(asked(&each, 0).n, 12);
  struct seen limited = all_after(0, TC_FIRINGS_MAX - 1);
  cr_assert_str_eq(limited.limited, "exec:page,snap");
  cr_assert_str_eq(limited.actions, "");
}

Test(firings, of_many_rules_each_has_its_share) {
  enum { RULES = 32, SHARE = TC_FIRINGS_MAX / RULES };
  char name[16];

  for (unsigned i = 0; i < RULES; i++) {
    snprintf(name, sizeof name, "r%u", i);
    for (unsigned n = 0; n < 2 * SHARE; n++) add_of(name, 1, "", "", "");
  }
  for (unsigned i = 0; i < RULES; i++) {
    snprintf(name, sizeof name, "r%u", i);
    const struct tc_firings_ask ask = { .rule = name };
    cr_assert_geq(asked(&ask, 0).n, SHARE, "%s", name);
  }
  for (unsigned i = 0; i < TC_FIRINGS_MAX + 1; i++) { /* rules that are added and removed */
    snprintf(name, sizeof name, "s%u", i);
    add_of(name, 1, "", "", "");
  }
  cr_assert_eq(all_after(0, 0).n, TC_FIRINGS_MAX);
}

static void write_file(const char *text) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_file_replace(state, "firings", text, strlen(text), &diag), TB_OK);
}

Test(firings, a_line_that_is_wrong_is_left_out) {
#define STREAM "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
  static const char *const bad[] = { "0 1001 1 " STREAM " slow shop host:1 - words", /* no id */
                                     "9 1001 1 5a slow shop host:1 - words",
                                     "9 1001 1 " STREAM "5 slow shop host:1 - words",
                                     "9 1001 1 " STREAM " slow shop host:1 -",
                                     "words",
                                     "" };
  char text[512];

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text,
             "5 1001 1 " STREAM " slow shop host:1 - \n%s\n7 1002 2 " STREAM
             " slow shop host:1 exec:a it is\n5 1003 3 " STREAM " slow shop host:1 - older\n",
             bad[i]);
    write_file(text);
    begin_again();
    cr_assert_eq(wrong.rc, TB_BROKEN);
    cr_assert_str_eq(wrong.text, "firings line 2 is not understood");
    struct seen seen = all_after(0, 0);
    cr_assert_eq(seen.n, 2, "%s", bad[i]);
    cr_assert_str_eq(seen.words, "it is");
    cr_assert_eq(seen.last_id, 7);
  }
}
