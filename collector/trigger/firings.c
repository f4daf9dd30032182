/* SPDX-License-Identifier: Apache-2.0 */
/* A firing is stored as its line of the file. */
#include "collector/trigger/firings.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"
#include "archive/text_file.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/trigger/pace.h"
#include "trigger/watch.h"

#define FILE_NAME  "firings"
#define NO_ACTIONS "-"

enum {
  ACTIONS_BYTES = TR_ACTIONS_BYTES + sizeof "!snap," + TR_ACTIONS_MAX, /* each may have a ! */
  LINE_BYTES = 3 * 21 + TC_STREAM_HEX_BYTES + 1 + TR_NAME_MAX + 1 + 2 * (TC_NAME_MAX + 1) +
               ACTIONS_BYTES + TR_WORDS_MAX,
  FILE_BYTES_MAX = TC_FIRINGS_MAX * LINE_BYTES,
};

/* Older firings are dropped by the helper unit and no longer count for paces. */
static const uint64_t done_within_ns = UINT64_C(3600000000000);

/* A rule with firings. */
struct of_rule {
  char name[TR_NAME_MAX + 1];
  size_t n, chosen; /* chosen: by the current tc_firings_each() */
  struct of_rule *next;
};

struct entry {
  uint64_t id;
  struct of_rule *rule;
  bool has_begun, is_chosen; /* has_begun: a snap or action was begun, at some time */
  char *line;
};

enum unsaved { NOTHING, PATIENT, URGENT }; /* PATIENT: may wait, see tc_firings_save_paced() */

struct tc_firings {
  struct tc_text_file file;
  pthread_mutex_t lock; /* protects the fields below */
  enum unsaved unsaved; /* since the last paced save */
  struct tc_pace patient_saves;
  struct of_rule *rules;
  struct entry all[TC_FIRINGS_MAX];
  size_t n;
};

static uint64_t last_id(const struct tc_firings *firings) {
  return firings->n > 0 ? firings->all[firings->n - 1].id : 0;
}

/* ---- lines */

struct parsed {
  struct tc_firing firing; /* lends from the fields below, and from the line */
  char rule[TR_NAME_MAX + 1];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  char actions[ACTIONS_BYTES], limited[ACTIONS_BYTES];
};

_Static_assert(TR_NAME_MAX == 32 && TC_NAME_MAX == 64 && ACTIONS_BYTES == 343,
               "widths in the format of a line");

static unsigned count_spaces(const char *text, int len) {
  unsigned n = 0;

  for (int i = 0; i < len; i++) n += text[i] == ' ' ? 1 : 0;
  return n;
}

static void append_action(char *list, const char *one) {
  size_t len = strlen(list);

  snprintf(list + len, ACTIONS_BYTES - len, "%s%s", len > 0 ? "," : "", one);
}

static void split_actions(char *field, struct parsed *out) {
  for (char *rest = field; rest != NULL;) {
    const char *one = strsep(&rest, ",");
    if (strcmp(one, "snap") == 0)
      out->firing.has_snap = true;
    else
      append_action(*one == '!' ? out->limited : out->actions, *one == '!' ? one + 1 : one);
  }
}

/* A field that is longer than its width would be read as two, which shows in the number of spaces. */
static bool parse_line(const char *line, struct parsed *out) {
  char stream[TC_STREAM_HEX_BYTES], actions[ACTIONS_BYTES];
  struct tc_firing *f = &out->firing;
  int end = 0;

  *out = (struct parsed){ .firing = { .rule = out->rule,
                                      .service = out->service,
                                      .instance = out->instance,
                                      .actions = out->actions,
                                      .limited = out->limited } };
  int n =
      sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %32s %32s %64s %64s %342s%n", &f->id,
             &f->wall_ns, &f->gen, stream, out->rule, out->service, out->instance, actions, &end);
  if (n != 8 || line[end] != ' ' || count_spaces(line, end) != 7 ||
      strlen(stream) != 2 * sizeof f->stream)
    return false;
  f->words = line + end + 1;
  if (strcmp(actions, NO_ACTIONS) != 0) split_actions(actions, out);
  return tb_unhex(stream, f->stream, sizeof f->stream);
}

static void join_actions(const struct tc_firing *f, char out[ACTIONS_BYTES]) {
  char limited[ACTIONS_BYTES], one[ACTIONS_BYTES];

  snprintf(out, ACTIONS_BYTES, "%s", f->actions);
  if (f->has_snap) append_action(out, "snap");
  snprintf(limited, sizeof limited, "%s", f->limited);
  for (char *rest = limited; rest != NULL && *rest != '\0';) {
    snprintf(one, sizeof one, "!%s", strsep(&rest, ","));
    append_action(out, one);
  }
  if (out[0] == '\0') strcpy(out, NO_ACTIONS);
}

/* Returns an allocated line, NULL if memory cannot be allocated. */
static char *print_line(const struct tc_firing *f, uint64_t id) {
  char stream[TC_STREAM_HEX_BYTES], actions[ACTIONS_BYTES], *line = NULL;

  join_actions(f, actions);
  int n = asprintf(&line, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s %s %s %s %s %s", id, f->wall_ns,
                   f->gen, tb_hex(f->stream, sizeof f->stream, stream), f->rule, f->service,
                   f->instance, actions, f->words);

  if (n < 0) return NULL;
  for (char *c = line; *c != '\0'; c++) /* names in the words may contain control characters */
    if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
  return line;
}

/* ---- rules and entries */

/* Finds or creates a rule. Returns NULL if memory cannot be allocated. */
static struct of_rule *rule_of(struct tc_firings *firings, const char *name) {
  struct of_rule *rule = firings->rules;

  while (rule != NULL && strcmp(rule->name, name) != 0) rule = rule->next;
  if (rule != NULL) return rule;
  rule = calloc(1, sizeof *rule);
  if (rule == NULL) return NULL;
  snprintf(rule->name, sizeof rule->name, "%s", name);
  rule->next = firings->rules;
  firings->rules = rule;
  return rule;
}

static void free_rule(struct tc_firings *firings, struct of_rule *rule) {
  struct of_rule **at = &firings->rules;

  while (*at != rule) at = &(*at)->next;
  *at = rule->next;
  free(rule);
}

static void remove_at(struct tc_firings *firings, size_t i) {
  struct of_rule *rule = firings->all[i].rule;

  free(firings->all[i].line);
  firings->n--;
  memmove(&firings->all[i], &firings->all[i + 1], (firings->n - i) * sizeof firings->all[0]);
  if (--rule->n == 0) free_rule(firings, rule);
}

/* Returns the rule that gives up a firing for a new one of `more`, which is already counted. `more` wins a tie. */
static const struct of_rule *with_most(const struct tc_firings *firings,
                                       const struct of_rule *more) {
  const struct of_rule *most = more;

  for (const struct of_rule *rule = firings->rules; rule != NULL; rule = rule->next)
    if (rule != more && (rule->n > most->n || most->n == 1)) most = rule;
  return most;
}

/* Returns the oldest firing of the rule for which nothing was begun; if there is none, the oldest. */
static size_t oldest_of(const struct tc_firings *firings, const struct of_rule *rule,
                        uint64_t now_ns) {
  size_t oldest = SIZE_MAX;

  for (size_t i = 0; i < firings->n; i++) {
    const struct entry *entry = &firings->all[i];
    if (entry->rule != rule) continue;
    if (!entry->has_begun || entry->id + done_within_ns < now_ns) return i;
    if (oldest == SIZE_MAX) oldest = i;
  }
  return oldest;
}

/* Owns line. */
static tb_rc add_entry(struct tc_firings *firings, const struct tc_firing *firing, uint64_t id,
                       char *line) {
  struct of_rule *rule = rule_of(firings, firing->rule);

  if (rule == NULL) {
    free(line);
    return TB_NOMEM;
  }
  rule->n++; /* keeps the rule if its only other firing is removed now */
  if (firings->n == TC_FIRINGS_MAX)
    remove_at(firings, oldest_of(firings, with_most(firings, rule), id));
  firings->all[firings->n++] =
      (struct entry){ .id = id,
                      .rule = rule,
                      .has_begun = firing->actions[0] != '\0' || firing->has_snap,
                      .line = line };
  tc_text_file_changed(&firings->file);
  return TB_OK;
}

static void raise_unsaved(struct tc_firings *firings, enum unsaved unsaved) {
  if (firings->unsaved < unsaved) firings->unsaved = unsaved;
}

tb_rc tc_firings_add(struct tc_firings *firings, const struct tc_firing *firing) {
  uint64_t id = tc_wall_ns();

  pthread_mutex_lock(&firings->lock);
  if (id <= last_id(firings)) id = last_id(firings) + 1;
  char *line = print_line(firing, id);
  tb_rc rc = line != NULL ? add_entry(firings, firing, id, line) : TB_NOMEM;
  bool is_urgent = firing->actions[0] != '\0' || firing->has_snap || firing->has_keep;
  if (rc == TB_OK) raise_unsaved(firings, is_urgent ? URGENT : PATIENT);
  pthread_mutex_unlock(&firings->lock);
  return rc;
}

/* Marks what is asked for, newest first. Returns the index of the oldest one looked at. */
static size_t choose(struct tc_firings *firings, const struct tc_firings_ask *ask) {
  size_t i = firings->n, chosen = 0;

  for (struct of_rule *rule = firings->rules; rule != NULL; rule = rule->next) rule->chosen = 0;
  while (i > 0 && firings->all[i - 1].id > ask->after &&
         (ask->newest == 0 || chosen < ask->newest)) {
    struct entry *entry = &firings->all[--i];
    entry->is_chosen = (ask->rule[0] == '\0' || strcmp(ask->rule, entry->rule->name) == 0) &&
                       (ask->newest_of_rule == 0 || entry->rule->chosen < ask->newest_of_rule);
    if (!entry->is_chosen) continue;
    entry->rule->chosen++;
    chosen++;
  }
  return i;
}

tb_rc tc_firings_each(struct tc_firings *firings, const struct tc_firings_ask *ask, void *self,
                      tb_rc (*take)(void *self, const struct tc_firing *firing)) {
  struct parsed parsed;
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&firings->lock);
  for (size_t i = choose(firings, ask); i < firings->n && rc == TB_OK; i++)
    if (firings->all[i].is_chosen && parse_line(firings->all[i].line, &parsed))
      rc = take(self, &parsed.firing);
  pthread_mutex_unlock(&firings->lock);
  return rc;
}

/* ---- the file */

static void print_all(void *self, struct tb_buf *text) {
  struct tc_firings *firings = self;

  pthread_mutex_lock(&firings->lock);
  for (size_t i = 0; i < firings->n; i++) tb_buf_printf(text, "%s\n", firings->all[i].line);
  pthread_mutex_unlock(&firings->lock);
}

tb_rc tc_firings_save(struct tc_firings *firings, struct tb_diag *diag) {
  return tc_text_file_save(&firings->file, firings, print_all, diag);
}

/* Returns what the caller has to save now. */
static enum unsaved take_unsaved(struct tc_firings *firings, uint64_t now_ns) {
  static const struct tc_pace_limits limits = { .every_ns = UINT64_C(10000000000) };
  enum unsaved unsaved = firings->unsaved;

  if (unsaved == PATIENT && !tc_pace_takes(&firings->patient_saves, &limits, now_ns))
    return NOTHING;
  firings->unsaved = NOTHING;
  return unsaved;
}

tb_rc tc_firings_save_paced(struct tc_firings *firings, uint64_t now_ns, struct tb_diag *diag) {
  pthread_mutex_lock(&firings->lock);
  enum unsaved unsaved = take_unsaved(firings, now_ns);
  pthread_mutex_unlock(&firings->lock);
  if (unsaved == NOTHING) return TB_OK;
  tb_rc rc = tc_firings_save(firings, diag);
  if (rc != TB_OK) {
    pthread_mutex_lock(&firings->lock);
    raise_unsaved(firings, unsaved);
    pthread_mutex_unlock(&firings->lock);
  }
  return rc;
}

static tb_rc read_line(void *self, const char *line, bool *out_is_one) {
  struct tc_firings *firings = self;
  struct parsed parsed;

  *out_is_one = parse_line(line, &parsed) && parsed.firing.id > last_id(firings);
  if (!*out_is_one) return TB_OK;
  char *copy = strdup(line);
  if (copy == NULL) return TB_NOMEM;
  return add_entry(firings, &parsed.firing, parsed.firing.id, copy);
}

tb_rc tc_firings_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                      struct tc_firings **out) {
  struct tc_firings *firings = calloc(1, sizeof *firings);

  if (firings == NULL) return TB_NOMEM;
  pthread_mutex_init(&firings->lock, NULL);
  tb_rc rc = tc_text_file_open(&firings->file, state_fd, FILE_NAME, FILE_BYTES_MAX, firings,
                               read_line, diag, out_wrong);
  if (rc == TB_OK)
    *out = firings;
  else
    tc_firings_free(firings);
  return rc;
}

void tc_firings_free(struct tc_firings *firings) {
  if (firings == NULL) return;
  while (firings->n > 0) remove_at(firings, firings->n - 1);
  pthread_mutex_destroy(&firings->lock);
  tc_text_file_fini(&firings->file);
  free(firings);
}
