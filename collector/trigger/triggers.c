/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/trigger/triggers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "base/thread.h"
#include "collector/base/logger.h"
#include "collector/trigger/pace.h"
#include "collector/trigger/snaps.h"

#define ADDED_FILE "triggers"

enum {
  ADDED_BYTES_MAX = TR_RULES_MAX * (TR_RULE_TEXT_MAX + 1),
  TURN_MS = 500,
  SNAP_WAIT_MS = 10000,
  ANSWER_BYTES_MAX = 1 << 20,
};
static const uint64_t HOUR_NS = UINT64_C(3600000000000);

/* State of a rule, at the rule's index. */
struct state {
  struct tc_trigger_status shown;
  struct tc_pace snap_pace, action_pace[TR_ACTIONS_MAX];
};

struct tc_triggers {
  struct tc_triggers_env env;
  struct tc_firings *firings;
  pthread_t thread;
  bool is_started;
  _Atomic uint64_t turns, version;

  /* Held while the rules and their files change: a disk may be slow, and loops do not wait for it. */
  pthread_mutex_t changing;
  pthread_mutex_t lock; /* protects the fields below; rules and is_added change under both locks */
  pthread_cond_t changed;
  bool stopping;
  struct tr_rules *rules;
  struct state states[TR_RULES_MAX];
  struct tc_waiting_snaps snaps;
};

/* --- rules ------------------------------------------------------------------------------------- */

/* At the start a stored rule that is wrong is only logged, so that the collector still starts. */
static tb_rc add_line(struct tr_rules *rules, const char *text, bool is_start,
                      struct tb_diag *diag) {
  char shown[TC_ESCAPE_MAX + 1];
  struct tb_diag why;

  tb_diag_clear(&why);
  tb_rc rc = tr_rules_add_by_hand(rules, text, &why);
  if (rc == TB_OK || rc == TB_NOMEM) return rc;
  if (!is_start) return tb_fail(diag, rc, "added rules: %s", why.text);
  tc_log(TC_ERROR, "trigger", "rule left out: %s: %s", why.text,
         tc_escape(shown, text, strlen(text)));
  return TB_OK;
}

static tb_rc add_all(struct tr_rules *rules, char *added, bool is_start, struct tb_diag *diag) {
  char *rest = NULL;
  tb_rc rc = TB_OK;

  for (char *line = strtok_r(added, "\n", &rest); rc == TB_OK && line != NULL;
       line = strtok_r(NULL, "\n", &rest))
    rc = add_line(rules, line, is_start, diag);
  return rc;
}

/* Reads the rules of both files. added: the text of the state folder's file, which is modified. *out_of_file: number of
 * rules from trigger.file. */
static tb_rc read_rules(const struct tc_triggers *t, char *added, bool is_start,
                        struct tb_diag *diag, struct tr_rules **out, unsigned *out_of_file) {
  const char *file = t->env.config->trigger_file;
  struct tr_rules *rules;

  TB_TRY(tr_rules_new(&rules));
  tb_rc rc = file[0] != '\0' ? tr_rules_read(rules, file, diag) : TB_OK;
  *out_of_file = tr_rules_count(rules);
  if (rc == TB_OK) rc = add_all(rules, added, is_start, diag);
  if (rc == TB_OK)
    *out = rules;
  else
    tr_rules_release(rules);
  return rc;
}

/* A rule that is unchanged keeps its counts. */
static struct state state_of(const struct tc_triggers *t, const struct tr_rule *rule) {
  struct state state = { .shown.fired = 0 };

  for (unsigned i = 0; t->rules != NULL && i < tr_rules_count(t->rules); i++)
    if (strcmp(tr_rules_at(t->rules, i)->text, rule->text) == 0) return t->states[i];
  memcpy(state.shown.name, rule->name, sizeof rule->name);
  return state;
}

static void use_rules(struct tc_triggers *t, struct tr_rules *rules, unsigned of_file) {
  struct state states[TR_RULES_MAX];
  unsigned n = tr_rules_count(rules);

  for (unsigned i = 0; i < n; i++) {
    states[i] = state_of(t, tr_rules_at(rules, i));
    states[i].shown.is_added = i >= of_file;
  }
  memcpy(t->states, states, n * sizeof *states);
  tr_rules_release(t->rules);
  t->rules = rules;
  atomic_fetch_add(&t->version, 1);
}

static char *added_text(const struct tc_triggers *t, const char *without, const char *with) {
  size_t room = ADDED_BYTES_MAX + TR_RULE_TEXT_MAX + 2, n = 0;
  char *text = calloc(1, room);

  if (text == NULL) return NULL;
  for (unsigned i = 0; i < tr_rules_count(t->rules); i++) {
    const struct tr_rule *rule = tr_rules_at(t->rules, i);
    if (!t->states[i].shown.is_added || (without != NULL && strcmp(rule->name, without) == 0))
      continue;
    n += (size_t)snprintf(text + n, room - n, "%s\n", rule->text);
  }
  if (with != NULL) snprintf(text + n, room - n, "%s\n", with);
  return text;
}

/* Call with `changing` locked. text: of the file in the state folder, written if is_new; owned; NULL: out of memory. */
static tb_rc change_rules(struct tc_triggers *t, char *text, bool is_new, struct tb_diag *diag) {
  struct tr_rules *rules;
  unsigned of_file;

  if (text == NULL) return TB_NOMEM;
  char *lines = strdup(text);
  tb_rc rc = lines != NULL ? read_rules(t, lines, false, diag, &rules, &of_file) : TB_NOMEM;
  if (rc == TB_OK && is_new) {
    rc = tc_file_replace(t->env.state_fd, ADDED_FILE, text, strlen(text), diag);
    if (rc != TB_OK) tr_rules_release(rules);
  }
  if (rc == TB_OK) {
    pthread_mutex_lock(&t->lock);
    use_rules(t, rules, of_file);
    pthread_mutex_unlock(&t->lock);
  }
  free(lines);
  free(text);
  return rc;
}

/* Returns SIZE_MAX if there is no such rule. */
static size_t find_rule(const struct tc_triggers *t, const char *name) {
  for (unsigned i = 0; i < tr_rules_count(t->rules); i++)
    if (strcmp(tr_rules_at(t->rules, i)->name, name) == 0) return i;
  return SIZE_MAX;
}

static tb_rc add_rule(struct tc_triggers *t, const struct tr_rule *rule, struct tb_diag *diag) {
  if (find_rule(t, rule->name) != SIZE_MAX)
    return tb_fail(diag, TB_REFUSED, "there is a rule \"%s\" already", rule->name);
  if (tr_rules_count(t->rules) == TR_RULES_MAX)
    return tb_fail(diag, TB_BUDGET, "there are %d rules already", TR_RULES_MAX);
  return change_rules(t, added_text(t, NULL, rule->text), true, diag);
}

tb_rc tc_triggers_add(struct tc_triggers *t, const char *text, struct tb_diag *diag) {
  struct tr_rules *alone;

  TB_TRY(tr_rules_new(&alone));
  tb_rc rc = tr_rules_add_by_hand(alone, text, diag);
  if (rc == TB_OK) {
    pthread_mutex_lock(&t->changing);
    rc = add_rule(t, tr_rules_at(alone, 0), diag);
    pthread_mutex_unlock(&t->changing);
  }
  if (rc == TB_OK) tc_log(TC_NOTICE, "trigger", "rule=%s: added", tr_rules_at(alone, 0)->name);
  tr_rules_release(alone);
  return rc;
}

static tb_rc remove_rule(struct tc_triggers *t, const char *name, struct tb_diag *diag) {
  size_t at = find_rule(t, name);

  if (at == SIZE_MAX)
    return tb_fail(diag, TB_NOTFOUND, "no rule \"%.60s\"; tracectl trigger list shows them", name);
  if (!t->states[at].shown.is_added)
    return tb_fail(diag, TB_REFUSED, "\"%.60s\" is a rule of %.100s: change that file", name,
                   t->env.config->trigger_file);
  return change_rules(t, added_text(t, name, NULL), true, diag);
}

tb_rc tc_triggers_remove(struct tc_triggers *t, const char *name, struct tb_diag *diag) {
  char shown[TC_ESCAPE_MAX + 1];

  pthread_mutex_lock(&t->changing);
  tb_rc rc = remove_rule(t, name, diag);
  pthread_mutex_unlock(&t->changing);
  if (rc == TB_OK)
    tc_log(TC_NOTICE, "trigger", "rule=%s: removed", tc_escape(shown, name, strlen(name)));
  return rc;
}

tb_rc tc_triggers_reload(struct tc_triggers *t, struct tb_diag *diag) {
  pthread_mutex_lock(&t->changing);
  tb_rc rc = change_rules(t, added_text(t, NULL, NULL), false, diag);
  pthread_mutex_unlock(&t->changing);
  return rc;
}

tb_rc tc_triggers_each(struct tc_triggers *t, void *self,
                       tb_rc (*take)(void *self, const struct tc_trigger_status *status,
                                     const char *text)) {
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&t->lock);
  for (unsigned i = 0; i < tr_rules_count(t->rules) && rc == TB_OK; i++)
    rc = take(self, &t->states[i].shown, tr_rules_at(t->rules, i)->text);
  pthread_mutex_unlock(&t->lock);
  return rc;
}

/* --- loops ------------------------------------------------------------------------------------- */

uint64_t tc_triggers_version(const struct tc_triggers *t) {
  return atomic_load(&t->version);
}

tb_rc tc_triggers_rules(struct tc_triggers *t, struct tr_rules **out, uint64_t *out_version) {
  struct tr_rules *copy;
  tb_rc rc = tr_rules_new(&copy);

  if (rc != TB_OK) return rc;
  pthread_mutex_lock(&t->lock);
  *out_version = atomic_load(&t->version);
  for (unsigned i = 0; i < tr_rules_count(t->rules) && rc == TB_OK; i++)
    rc = tr_rules_add(copy, tr_rules_at(t->rules, i)->text, NULL);
  pthread_mutex_unlock(&t->lock);
  if (rc == TB_OK)
    *out = copy;
  else
    tr_rules_release(copy);
  return rc;
}

static void keep_traces(struct tc_triggers *t, const struct tc_trigger_firing *firing) {
  const struct tr_rule *rule = firing->fired->rule;
  uint64_t now = tc_wall_ns(), at = firing->wall_ns != 0 ? firing->wall_ns : now;
  struct tc_keep kept = { .from_ns = at > rule->keep_before_ns ? at - rule->keep_before_ns : 0,
                          .until_ns = at + rule->keep_after_ns,
                          .noted_ns = now,
                          .of_stream = rule->keep == TR_REACH_STREAM };

  if (rule->keep == TR_REACH_NONE) return;
  memcpy(kept.rule, rule->name, sizeof kept.rule);
  memcpy(kept.stream, firing->stream, sizeof kept.stream);
  if (rule->keep == TR_REACH_SERVICE)
    snprintf(kept.service, sizeof kept.service, "%s", firing->service);
  if (tc_keeps_add(t->env.keeps, &kept) != TB_OK)
    tc_log(TC_ERROR, "trigger", "rule=%s: out of memory; its traces are not kept", rule->name);
}

/* Call with the lock. */
static void order_snap(struct tc_triggers *t, const struct tc_trigger_firing *firing) {
  const struct tr_rule *rule = firing->fired->rule;
  struct tc_waiting_snap order = { .of_stream = rule->snap == TR_REACH_STREAM,
                                   .last_ns = rule->snap_last_ns };

  memcpy(order.rule, rule->name, sizeof order.rule);
  memcpy(order.stream, firing->stream, sizeof order.stream);
  if (rule->snap != TR_REACH_ALL)
    snprintf(order.service, sizeof order.service, "%s", firing->service);
  (void)tc_waiting_snaps_add(&t->snaps, &order); /* full if many snaps belong to removed rules */
  pthread_cond_signal(&t->changed);
}

static struct tc_pace_limits limits_of(const struct tc_triggers *t, const struct tr_pace *said) {
  const struct tc_config *config = t->env.config;

  return (struct tc_pace_limits){
    .every_ns = said->has_every ? said->every_ns : config->trigger_every,
    .hour_max = said->has_hour_max ? said->hour_max : config->trigger_hour_max,
  };
}

/* The actions of a firing: those that are done, and those that a limit leaves out. */
struct done {
  bool has_snap;
  unsigned left_out;
  char actions[TR_ACTIONS_BYTES], limited[TR_ACTIONS_BYTES + sizeof "snap,"];
};

static void append_action(char *list, size_t bytes, const char *one) {
  size_t len = strlen(list);

  snprintf(list + len, bytes - len, "%s%s", len > 0 ? "," : "", one);
}

static void leave_out(struct done *done, const char *action) {
  append_action(done->limited, sizeof done->limited, action);
  done->left_out++;
}

/* Call with the lock. */
static void do_snap(struct tc_triggers *t, struct state *state,
                    const struct tc_trigger_firing *firing, struct done *done) {
  const struct tr_rule *rule = firing->fired->rule;
  struct tc_pace_limits limits = limits_of(t, &rule->snap_pace);

  if (rule->snap == TR_REACH_NONE) return;
  done->has_snap = !tc_waiting_snaps_has(&t->snaps, rule->name) &&
                   tc_pace_takes(&state->snap_pace, &limits, tc_mono_ns());
  if (done->has_snap)
    order_snap(t, firing);
  else
    leave_out(done, "snap");
}

/* Call with the lock. at: index of the action in the rule. */
static void do_action(struct tc_triggers *t, struct state *state, const struct tr_rule *rule,
                      unsigned at, const char *action, struct done *done) {
  struct tc_pace_limits limits = limits_of(t, &rule->action_pace[at]);

  if (tc_pace_takes(&state->action_pace[at], &limits, tc_mono_ns()))
    append_action(done->actions, sizeof done->actions, action);
  else
    leave_out(done, action);
}

/* Call with the lock. */
static void do_actions(struct tc_triggers *t, struct state *state,
                       const struct tc_trigger_firing *firing, struct done *done) {
  const struct tr_rule *rule = firing->fired->rule;
  char actions[TR_ACTIONS_BYTES], *rest = actions;

  do_snap(t, state, firing, done);
  memcpy(actions, rule->actions, sizeof actions);
  for (unsigned i = 0; rest != NULL && *rest != '\0'; i++)
    do_action(t, state, rule, i, strsep(&rest, ","), done);
  state->shown.limited += done->left_out > 0 ? 1 : 0;
}

static void update_status(struct state *state, const struct tc_trigger_firing *firing) {
  struct tc_trigger_status *shown = &state->shown;

  shown->fired++;
  shown->gen = firing->gen;
  shown->wall_ns = firing->wall_ns;
  memcpy(shown->stream, firing->stream, sizeof shown->stream);
  snprintf(shown->service, sizeof shown->service, "%s", firing->service);
  snprintf(shown->instance, sizeof shown->instance, "%s", firing->instance);
  memcpy(shown->words, firing->fired->words, sizeof shown->words);
}

static void write_down(struct tc_triggers *t, const struct tc_trigger_firing *firing,
                       const struct done *done) {
  const struct tr_fired *fired = firing->fired;
  struct tc_firing written = { .wall_ns = firing->wall_ns,
                               .gen = firing->gen,
                               .rule = fired->rule->name,
                               .service = firing->service,
                               .instance = firing->instance,
                               .words = fired->words,
                               .actions = done->actions,
                               .has_snap = done->has_snap,
                               .has_keep = fired->rule->keep != TR_REACH_NONE,
                               .limited = done->limited };

  memcpy(written.stream, firing->stream, sizeof written.stream);
  if (tc_firings_add(t->firings, &written) != TB_OK)
    tc_log(TC_ERROR, "trigger", "rule=%s: out of memory; the firing is not in the history",
           fired->rule->name);
}

/* Limited per rule: one that fires all the time takes no lines from others. */
static void log_fired(const struct tc_trigger_firing *firing, const struct done *done) {
  const struct tr_fired *fired = firing->fired;
  char words[TC_ESCAPE_MAX + 1];

  tc_log_about(tc_log_subject_of(fired->rule->name), TC_WARN, "trigger",
               "rule=%s service=%s instance=%s gen=%" PRIu64 ": %s%s%s", fired->rule->name,
               firing->service, firing->instance, firing->gen,
               tc_escape(words, fired->words, strlen(fired->words)),
               done->left_out > 0 ? "; too soon or too often, left out: " : "", done->limited);
}

unsigned tc_triggers_fired(struct tc_triggers *t, const struct tc_trigger_firing *firing) {
  struct done done = { .left_out = 0 };

  keep_traces(t, firing); /* first: the thread saves it, then waits for agents */
  pthread_mutex_lock(&t->lock);
  size_t at = find_rule(t, firing->fired->rule->name);
  if (at != SIZE_MAX) { /* otherwise it was just removed: do nothing */
    update_status(&t->states[at], firing);
    do_actions(t, &t->states[at], firing, &done);
  }
  pthread_mutex_unlock(&t->lock);
  write_down(t, firing, &done);
  log_fired(firing, &done);
  return done.left_out;
}

/* --- snaps: the thread ------------------------------------------------------------------------- */

static void log_answers(const struct tc_waiting_snap *snap, const struct tc_snap_row *rows,
                        size_t n) {
  for (size_t i = 0; i < n; i++)
    tc_log(TC_NOTICE, "trigger",
           "rule=%s service=%s instance=%s: snap: %s, %" PRIu64 " generations", snap->rule,
           rows[i].who.service, rows[i].who.instance, tc_snap_state_word(rows[i].done.state),
           rows[i].done.generations);
}

static void ask_agents(struct tc_triggers *t, const struct tc_waiting_snap *snap) {
  const struct tc_snap_ask ask = { .service = snap->service,
                                   .instance = snap->instance,
                                   .stream = snap->of_stream ? snap->stream : NULL,
                                   .last_ns = snap->last_ns,
                                   .wait_ms = SNAP_WAIT_MS };
  struct tc_snap_row *rows;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;
  size_t n;

  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, ANSWER_BYTES_MAX);
  tb_arena_init(&arena, &mem, 16 << 10);
  if (tc_recorders_ask(t->env.recorders, &ask, &arena, &diag, &rows, &n) == TB_OK)
    log_answers(snap, rows, n);
  else
    tc_log(TC_WARN, "trigger", "rule=%s: snap: %s", snap->rule, diag.text);
  tb_arena_fini(&arena);
}

static void save_files(struct tc_triggers *t, bool is_end) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_keeps_save(t->env.keeps, &diag) != TB_OK)
    tc_log(TC_ERROR, "trigger", "the list of kept traces cannot be written: %s", diag.text);
  tb_diag_clear(&diag);
  tb_rc rc = is_end ? tc_firings_save(t->firings, &diag)
                    : tc_firings_save_paced(t->firings, tc_mono_ns(), &diag);
  if (rc != TB_OK) tc_log(TC_ERROR, "trigger", "the history cannot be written: %s", diag.text);
  if (t->env.findings != NULL) tc_findings_turn(t->env.findings, tc_wall_ns(), is_end);
}

/* Returns false if the thread is to end. */
static bool next_snap(struct tc_triggers *t, struct tc_waiting_snap *out, bool *out_any) {
  struct timespec soon = tc_from_now(TURN_MS);

  pthread_mutex_lock(&t->lock);
  if (t->snaps.n == 0 && !t->stopping) pthread_cond_timedwait(&t->changed, &t->lock, &soon);
  bool goes_on = !t->stopping;
  *out_any = goes_on && tc_waiting_snaps_take(&t->snaps, out);
  pthread_mutex_unlock(&t->lock);
  return goes_on;
}

static void *run_triggers(void *self) {
  struct tc_triggers *t = self;
  struct tc_waiting_snap snap;
  bool any;

  while (next_snap(t, &snap, &any)) {
    save_files(t, false);
    if (any) ask_agents(t, &snap);
    atomic_fetch_add(&t->turns, 1);
  }
  return NULL;
}

struct tc_firings *tc_triggers_firings(struct tc_triggers *t) {
  return t->firings;
}

uint64_t tc_triggers_turns(const struct tc_triggers *t) {
  return atomic_load(&t->turns);
}

/* --- begin and end ----------------------------------------------------------------------------- */

/* An action of the history counts from the time when it was noted, by the wall clock: the machine may have been rebooted
 * since. */
static tb_rc count_firing(void *self, const struct tc_firing *firing) {
  struct tc_triggers *t = self;
  char actions[TR_ACTIONS_BYTES + 1], one[TR_ACTIONS_BYTES];
  uint64_t wall = tc_wall_ns(), mono = tc_mono_ns();
  uint64_t ago = wall > firing->id ? wall - firing->id : 0;
  size_t at = find_rule(t, firing->rule);

  if (at == SIZE_MAX) return TB_OK;
  if (firing->has_snap) tc_pace_took(&t->states[at].snap_pace, ago, mono);
  snprintf(actions, sizeof actions, "%s", tr_rules_at(t->rules, (unsigned)at)->actions);
  char *rest = actions;
  for (unsigned i = 0; rest != NULL && *rest != '\0'; i++) {
    snprintf(one, sizeof one, "%s", strsep(&rest, ","));
    if (tr_action_is_in(firing->actions, one))
      tc_pace_took(&t->states[at].action_pace[i], ago, mono);
  }
  return TB_OK;
}

static tb_rc count_firings(struct tc_triggers *t) {
  uint64_t now = tc_wall_ns();
  const struct tc_firings_ask ask = { .after = now > HOUR_NS ? now - HOUR_NS : 0, .rule = "" };

  return tc_firings_each(t->firings, &ask, t, count_firing);
}

static tb_rc open_firings(struct tc_triggers *t, struct tb_diag *diag) {
  struct tb_diag wrong;

  TB_TRY(tc_firings_open(t->env.state_fd, diag, &wrong, &t->firings));
  if (wrong.rc != TB_OK) tc_log(TC_ERROR, "trigger", "left out of the history: %s", wrong.text);
  return TB_OK;
}

tb_rc tc_triggers_open(const struct tc_triggers_env *env, struct tb_diag *diag,
                       struct tc_triggers **out) {
  struct tc_triggers *t = calloc(1, sizeof *t);
  struct tr_rules *rules;
  unsigned of_file;
  char *added;

  if (t == NULL) return TB_NOMEM;
  t->env = *env;
  pthread_mutex_init(&t->changing, NULL);
  pthread_mutex_init(&t->lock, NULL);
  tc_cond_init(&t->changed);
  tb_rc rc = tc_file_text(t->env.state_fd, ADDED_FILE, ADDED_BYTES_MAX, diag, &added);
  if (rc == TB_NOTFOUND) rc = (added = calloc(1, 1)) != NULL ? TB_OK : TB_NOMEM;
  if (rc == TB_OK) rc = open_firings(t, diag);
  if (rc == TB_OK) rc = read_rules(t, added, true, diag, &rules, &of_file);
  free(added);
  if (rc == TB_OK) {
    use_rules(t, rules, of_file);
    rc = count_firings(t);
  }
  if (rc == TB_OK)
    *out = t;
  else
    tc_triggers_free(t);
  return rc;
}

tb_rc tc_triggers_start(struct tc_triggers *t) {
  if (tc_thread_start(&t->thread, NULL, run_triggers, t) != 0) return TB_NOMEM;
  t->is_started = true;
  return TB_OK;
}

void tc_triggers_stop(struct tc_triggers *t) {
  if (t == NULL || !t->is_started) return;
  pthread_mutex_lock(&t->lock);
  t->stopping = true;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->lock);
  pthread_join(t->thread, NULL);
  t->is_started = false;
  save_files(t, true);
}

void tc_triggers_free(struct tc_triggers *t) {
  if (t == NULL) return;
  tc_firings_free(t->firings);
  tr_rules_release(t->rules);
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  pthread_mutex_destroy(&t->changing);
  free(t);
}
