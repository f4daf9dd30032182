/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "collector/trigger/triggers.h"

enum { FLAPS, RARE, SNAPS, TELLS, KEEPS };

static const char lines[] = "flaps WHEN finding leak DO exec page, snap all, "
                            "webhook chat every 0s max 7 an hour\n"
                            "rare WHEN finding leak DO exec page every 1h\n"
                            "snaps WHEN finding leak DO snap every 1h\n"
                            "tells WHEN finding leak DO alert\n"
                            "keeps WHEN finding leak DO keep\n";

static char dir[] = "/tmp/tc-triggers-XXXXXX";
static int state = -1;
static struct tc_config config;
static struct tc_recorders *recorders;
static struct tc_keeps *keeps;
static struct tc_triggers *triggers;
static struct tr_rules *rules;

static void open_triggers(void) {
  const struct tc_triggers_env env = {
    .config = &config, .state_fd = state, .recorders = recorders, .keeps = keeps
  };
  struct tb_diag diag;
  uint64_t version;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_triggers_open(&env, &diag, &triggers), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_triggers_rules(triggers, &rules, &version), TB_OK);
}

static void close_triggers(void) {
  tr_rules_release(rules);
  tc_triggers_free(triggers);
}

static void make(void) {
  char setting[64];
  struct tb_diag diag, wrong;

  tb_diag_clear(&diag);
  cr_assert_not_null(mkdtemp(dir));
  state = open(dir, O_RDONLY | O_DIRECTORY);
  int fd = openat(state, "rules", O_WRONLY | O_CREAT, 0600);
  cr_assert_eq(write(fd, lines, sizeof lines - 1), (ssize_t)sizeof lines - 1);
  close(fd);
  tc_config_init(&config);
  snprintf(setting, sizeof setting, "trigger.file=%s/rules", dir);
  cr_assert_eq(tc_config_set(&config, setting, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_recorders_new(&recorders), TB_OK);
  cr_assert_eq(tc_keeps_open(state, &diag, &wrong, &keeps), TB_OK);
  open_triggers();
}

static void unmake(void) {
  static const char *const names[] = { "rules", "firings", "kept" };

  close_triggers();
  tc_keeps_free(keeps);
  tc_recorders_free(recorders);
  tc_config_fini(&config);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlinkat(state, names[i], 0);
  close(state);
  rmdir(dir);
}

TestSuite(triggers, .init = make, .fini = unmake);

/* Fires the rule, and returns how many of its actions are left out. */
static unsigned fire(unsigned rule) {
  static const unsigned char stream[TC_STREAM_BYTES];
  struct tr_fired fired = { .rule = tr_rules_at(rules, rule), .words = "a leak" };
  const struct tc_trigger_firing firing = {
    .fired = &fired, .stream = stream, .service = "shop", .instance = "one", .gen = 1
  };

  return tc_triggers_fired(triggers, &firing);
}

struct found {
  unsigned n, pages, chats;
  char limited[64];
};

static tb_rc see(void *self, const struct tc_firing *firing) {
  struct found *found = self;

  found->n++;
  found->pages += tr_action_is_in(firing->actions, "exec:page") ? 1 : 0;
  found->chats += tr_action_is_in(firing->actions, "webhook:chat") ? 1 : 0;
  snprintf(found->limited, sizeof found->limited, "%s", firing->limited);
  return TB_OK;
}

static struct found found_of(const char *rule) {
  const struct tc_firings_ask ask = { .rule = rule };
  struct found found = { .n = 0 };

  cr_assert_eq(tc_firings_each(tc_triggers_firings(triggers), &ask, &found, see), TB_OK);
  return found;
}

static tb_rc see_limited(void *self, const struct tc_trigger_status *status, const char *text) {
  uint64_t *limited = self;

  (void)text;
  if (strcmp(status->name, "flaps") == 0) *limited = status->limited;
  return TB_OK;
}

/* Hardly any time passes: the default is 10 s between two actions. */
Test(triggers, a_rule_that_fires_all_the_time_is_limited_and_takes_nothing_of_another) {
  uint64_t limited = 0;

  cr_assert_eq(fire(RARE), 0);
  cr_assert_eq(fire(FLAPS), 0);
  for (unsigned i = 1; i < 7; i++) cr_assert_eq(fire(FLAPS), 2); /* pages and snaps are left out */
  for (unsigned i = 0; i < TC_FIRINGS_MAX; i++) cr_assert_eq(fire(FLAPS), 3);
  cr_assert_eq(fire(RARE), 1);
  struct found flaps = found_of("flaps"), rare = found_of("rare");
  cr_assert_eq(rare.n, 2);
  cr_assert_eq(rare.pages, 1);
  cr_assert_eq(flaps.n, TC_FIRINGS_MAX - 2);
  cr_assert_eq(flaps.pages, 1);
  cr_assert_eq(flaps.chats, 7);
  cr_assert_str_eq(flaps.limited, "snap,exec:page,webhook:chat");
  cr_assert_eq(tc_triggers_each(triggers, &limited, see_limited), TB_OK);
  cr_assert_eq(limited, TC_FIRINGS_MAX + 6);
}

/* The snap is in the history although the rule fires far more often than the history has room
 * for. */
Test(triggers, the_limit_of_snaps_alone_holds_across_a_restart) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(fire(SNAPS), 0);
  for (unsigned i = 0; i < TC_FIRINGS_MAX + 1; i++) cr_assert_eq(fire(SNAPS), 1);
  cr_assert_eq(tc_firings_save(tc_triggers_firings(triggers), &diag), TB_OK, "%s", diag.text);
  close_triggers();
  open_triggers();
  cr_assert_eq(fire(SNAPS), 1);
}

Test(triggers, the_limits_hold_across_a_restart) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  for (unsigned i = 0; i < 8; i++) (void)fire(FLAPS);
  cr_assert_eq(tc_firings_save(tc_triggers_firings(triggers), &diag), TB_OK, "%s", diag.text);
  close_triggers();
  open_triggers();
  cr_assert_eq(fire(FLAPS), 3);
  cr_assert_str_eq(found_of("flaps").limited, "snap,exec:page,webhook:chat");
  cr_assert_eq(fire(RARE), 0);
}

/* Returns how many firings the file has after the thread's turn at that time. */
static unsigned saved_at(double seconds) {
  struct tc_firings *firings = tc_triggers_firings(triggers);
  struct tb_diag diag;
  unsigned n = 0;
  char *text;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_firings_save_paced(firings, (uint64_t)(seconds * 1e9), &diag), TB_OK, "%s",
               diag.text);
  cr_assert_eq(tc_file_text(state, "firings", 1 << 20, &diag, &text), TB_OK, "%s", diag.text);
  for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) n++;
  free(text);
  return n;
}

Test(triggers, the_history_is_written_at_once_only_where_something_is_done) {
  (void)fire(TELLS);
  cr_assert_eq(saved_at(1), 1);
  (void)fire(TELLS);
  cr_assert_eq(saved_at(10.9), 1, "nothing waits for it");
  cr_assert_eq(saved_at(11), 2);
  (void)fire(TELLS);
  (void)fire(SNAPS);
  cr_assert_eq(saved_at(11.5), 4);
  cr_assert_eq(fire(SNAPS), 1);
  cr_assert_eq(saved_at(12), 4, "its snap is left out");
  (void)fire(RARE);
  cr_assert_eq(saved_at(12.5), 6);
  (void)fire(KEEPS);
  cr_assert_eq(saved_at(13), 7);
  (void)fire(TELLS);
  cr_assert_eq(saved_at(13.5), 7);
  close_triggers();
  open_triggers();
  cr_assert_eq(saved_at(0), 7, "what was read is not new");
  (void)fire(TELLS);
  cr_assert_eq(saved_at(0), 8);
}
