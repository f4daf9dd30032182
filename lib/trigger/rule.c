/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger/rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/small_file.h"
#include "base/text/nearest.h"
#include "pack/report.h"

enum {
  WORD_MAX = 256,
  FILE_BYTES_MAX = 1 << 20,
  CHUNK_BYTES = 16 << 10,
  SCHEMA_BYTES_MAX = 4 << 20
};

static const uint64_t keep_before_ns = UINT64_C(30000000000), keep_after_ns = UINT64_C(10000000000),
                      day_ns = UINT64_C(86400000000000);

struct tr_rules {
  unsigned holders;
  struct tb_mem mem;
  struct tb_arena arena; /* memory of the schemas, to whose names conditions point */
  Tracecollect__V1__ReportSchema *schema[TO_ANALYSIS_KINDS];
  unsigned n;
  struct tr_rule *rule[TR_RULES_MAX];
};

tb_rc tr_rules_new(struct tr_rules **out) {
  struct tr_rules *rules = calloc(1, sizeof *rules);
  tb_rc rc = TB_OK;

  if (rules == NULL) return TB_NOMEM;
  rules->holders = 1;
  tb_mem_init(&rules->mem, tb_mem_libc, NULL, SCHEMA_BYTES_MAX);
  tb_arena_init(&rules->arena, &rules->mem, CHUNK_BYTES);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && rc == TB_OK; k++)
    rc = tp_take_schema(&rules->arena, (enum to_analysis_kind)k, &rules->schema[k]);
  if (rc == TB_OK)
    *out = rules;
  else
    tr_rules_release(rules);
  return rc;
}

void tr_rules_hold(struct tr_rules *rules) {
  rules->holders++;
}

void tr_rules_release(struct tr_rules *rules) {
  if (rules == NULL || --rules->holders > 0) return;
  for (unsigned i = 0; i < rules->n; i++) free(rules->rule[i]);
  tb_arena_fini(&rules->arena);
  free(rules);
}

unsigned tr_rules_count(const struct tr_rules *rules) {
  return rules->n;
}

const struct tr_rule *tr_rules_at(const struct tr_rules *rules, unsigned i) {
  return rules->rule[i];
}

/* ---- words ---- */

struct parser {
  const struct tr_rules *rules;
  struct tr_rule *rule;
  bool is_by_hand;
  struct tb_diag *diag;
  const char *at;      /* after word */
  char word[WORD_MAX]; /* "": end of the text */
};

/* Reads the next word; a comma is a word. */
static tb_rc next_word(struct parser *p) {
  p->at += strspn(p->at, " \t");
  size_t len = *p->at == ',' ? 1 : strcspn(p->at, " \t,");

  if (len >= sizeof p->word)
    return tb_fail(p->diag, TB_BROKEN, "\"%.40s...\" is too long for a word", p->at);
  memcpy(p->word, p->at, len);
  p->word[len] = '\0';
  p->at += len;
  return TB_OK;
}

static bool word_is(const struct parser *p, const char *word) {
  return strcasecmp(p->word, word) == 0;
}

static const char *shown(const struct parser *p) {
  return p->word[0] != '\0' ? p->word : "the end";
}

static tb_rc expect(struct parser *p, const char *word) {
  if (p->word[0] == '\0')
    return tb_fail(p->diag, TB_BROKEN, "%s is missing at the end (NAME WHEN CONDITION DO ACTION)",
                   word);
  if (!word_is(p, word))
    return tb_fail(p->diag, TB_BROKEN, "expected %s, not \"%.60s\"", word, shown(p));
  return next_word(p);
}

/* ---- conditions ---- */

static tb_rc unknown_finding(const struct parser *p) {
  struct tb_nearest nearest = { .word = p->word };

  for (unsigned k = 0; k < TO_FINDINGS; k++)
    tb_nearest_try(&nearest, to_finding_name((enum to_finding_kind)k));
  if (nearest.best != NULL)
    return tb_fail(p->diag, TB_BROKEN, "no finding \"%.40s\"; did you mean \"%s\"?", p->word,
                   nearest.best);
  return tb_fail(p->diag, TB_BROKEN,
                 "no finding \"%.40s\"; there are deadlock, convoy, stall, leak, assists, starved "
                 "and misnested",
                 shown(p));
}

static tb_rc parse_finding(struct parser *p, struct tr_term *term) {
  TB_TRY(next_word(p));
  term->is_finding = true;
  for (unsigned k = 0; k < TO_FINDINGS; k++)
    if (word_is(p, to_finding_name((enum to_finding_kind)k))) {
      term->finding = (enum to_finding_kind)k;
      return next_word(p);
    }
  return unknown_finding(p);
}

static bool ends_condition(const struct parser *p) {
  return p->word[0] == '\0' || word_is(p, "and") || word_is(p, "of") || word_is(p, "in") ||
         word_is(p, "for") || word_is(p, "do");
}

static tb_rc parse_condition(struct parser *p, struct tr_term *term) {
  char text[WORD_MAX] = "";
  size_t len = 0;

  for (; !ends_condition(p); len = strlen(text)) {
    if (len + strlen(p->word) + 2 > sizeof text)
      return tb_fail(p->diag, TB_BROKEN, "\"%.40s...\" is too long for a condition", text);
    snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? " " : "", p->word);
    TB_TRY(next_word(p));
  }
  if (len == 0) return tb_fail(p->diag, TB_BROKEN, "expected a condition, not \"%.60s\"", shown(p));
  TB_TRY(tr_condition_parse(text, p->rules->schema, TO_ANALYSIS_KINDS, p->diag, &term->condition));
  term->condition.text = NULL; /* the rule's text has it */
  if (!to_analysis_find(term->condition.path.kind, &term->kind))
    return tb_fail(p->diag, TB_BROKEN, "no report \"%s\"", term->condition.path.kind);
  return TB_OK;
}

static tb_rc parse_terms(struct parser *p) {
  struct tr_rule *rule = p->rule;

  do {
    TB_TRY(next_word(p)); /* WHEN, AND */
    if (rule->terms == TR_TERMS_MAX)
      return tb_fail(p->diag, TB_BROKEN, "more than %d conditions", TR_TERMS_MAX);
    struct tr_term *term = &rule->term[rule->terms++];
    TB_TRY(word_is(p, "finding") ? parse_finding(p, term) : parse_condition(p, term));
  } while (word_is(p, "and"));
  return TB_OK;
}

/* ---- OF, IN and FOR ---- */

static const char names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

static bool take_pattern(const char *text, char *out) {
  size_t len = strlen(text), name = strspn(text, names);

  if (len == 0 || len > TR_PATTERN_MAX) return false;
  if (name != len && (name != len - 1 || text[name] != '*')) return false;
  memcpy(out, text, len + 1);
  return true;
}

static tb_rc parse_of(struct parser *p) {
  struct tr_rule *rule = p->rule;

  TB_TRY(next_word(p));
  char *slash = strchr(p->word, '/');
  if (slash != NULL) *slash = '\0';
  if (!take_pattern(p->word, rule->service))
    return tb_fail(p->diag, TB_BROKEN, "OF: \"%.60s\" is not a name of a service", shown(p));
  if (slash != NULL && !take_pattern(slash + 1, rule->instance))
    return tb_fail(p->diag, TB_BROKEN, "OF: \"%.60s\" is not a name of an instance", slash + 1);
  return next_word(p);
}

static tb_rc parse_in(struct parser *p) {
  TB_TRY(next_word(p));
  if (!to_window_find(p->word, &p->rule->window))
    return tb_fail(p->diag, TB_BROKEN, "IN: \"%.40s\" is not a window: 10s, 1m, 5m or all",
                   shown(p));
  return next_word(p);
}

static bool take_number(const char *text, uint64_t min, uint64_t max, uint64_t *out) {
  char *end;

  if (text[0] < '0' || text[0] > '9') return false;
  *out = strtoull(text, &end, 10);
  return *end == '\0' && *out >= min && *out <= max;
}

static tb_rc parse_for(struct parser *p) {
  uint64_t n;

  TB_TRY(next_word(p));
  if (!take_number(p->word, 1, TR_GENERATIONS_MAX, &n))
    return tb_fail(p->diag, TB_BROKEN, "FOR: \"%.40s\" is not a number from 1 to %d", shown(p),
                   TR_GENERATIONS_MAX);
  p->rule->generations = (unsigned)n;
  TB_TRY(next_word(p));
  return word_is(p, "generation") ? next_word(p) : expect(p, "GENERATIONS");
}

static const struct limit {
  const char *word;
  tb_rc (*parse)(struct parser *p);
} limits[] = { { "OF", parse_of }, { "IN", parse_in }, { "FOR", parse_for } };

enum { LIMITS = sizeof limits / sizeof *limits };

/* Returns LIMITS if the word begins none of them. */
static unsigned limit_of(const struct parser *p) {
  unsigned i = 0;

  while (i < LIMITS && !word_is(p, limits[i].word)) i++;
  return i;
}

/* Parses OF, IN and FOR in any order. */
static tb_rc parse_limits(struct parser *p) {
  bool seen[LIMITS] = { false };

  for (unsigned i; (i = limit_of(p)) < LIMITS;) {
    if (seen[i]) return tb_fail(p->diag, TB_BROKEN, "%s appears twice", limits[i].word);
    seen[i] = true;
    TB_TRY(limits[i].parse(p));
  }
  return TB_OK;
}

/* ---- actions ---- */

static tb_rc parse_alert(struct parser *p) {
  p->rule->alert = true;
  return TB_OK;
}

static tb_rc parse_reach(struct parser *p, const char *action, enum tr_reach *out) {
  if (*out != TR_REACH_NONE) return tb_fail(p->diag, TB_BROKEN, "%s appears twice", action);
  *out = word_is(p, "service") ? TR_REACH_SERVICE
         : word_is(p, "all")   ? TR_REACH_ALL
                               : TR_REACH_STREAM;
  return word_is(p, "stream") || *out != TR_REACH_STREAM ? next_word(p) : TB_OK;
}

static tb_rc parse_every(struct parser *p, struct tr_pace *pace) {
  if (pace->has_every) return tb_fail(p->diag, TB_BROKEN, "every appears twice");
  TB_TRY(next_word(p));
  if (!tr_time_parse(p->word, &pace->every_ns) || pace->every_ns > day_ns)
    return tb_fail(p->diag, TB_BROKEN,
                   "every: \"%.40s\" is not a time of at most a day, such as 1m", shown(p));
  pace->has_every = true;
  return next_word(p);
}

static tb_rc parse_hour_max(struct parser *p, struct tr_pace *pace) {
  if (pace->has_hour_max) return tb_fail(p->diag, TB_BROKEN, "max appears twice");
  TB_TRY(next_word(p));
  if (!take_number(p->word, 0, TR_HOUR_MAX, &pace->hour_max))
    return tb_fail(p->diag, TB_BROKEN, "max: \"%.40s\" is not a number from 0 to %d", shown(p),
                   TR_HOUR_MAX);
  pace->has_hour_max = true;
  TB_TRY(next_word(p));
  TB_TRY(expect(p, "an"));
  return expect(p, "hour");
}

/* Parses "every 1m max 20 an hour", in any order. */
static tb_rc parse_pace(struct parser *p, struct tr_pace *pace) {
  for (;;) {
    if (word_is(p, "every"))
      TB_TRY(parse_every(p, pace));
    else if (word_is(p, "max"))
      TB_TRY(parse_hour_max(p, pace));
    else
      return TB_OK;
  }
}

static tb_rc parse_last(struct parser *p) {
  struct tr_rule *rule = p->rule;

  if (!word_is(p, "last")) return TB_OK;
  TB_TRY(next_word(p));
  if (!tr_time_parse(p->word, &rule->snap_last_ns) || rule->snap_last_ns == 0)
    return tb_fail(p->diag, TB_BROKEN, "snap last: \"%.40s\" is not a time, such as 30s", shown(p));
  return next_word(p);
}

static tb_rc parse_snap(struct parser *p) {
  TB_TRY(parse_reach(p, "snap", &p->rule->snap));
  TB_TRY(parse_last(p));
  return parse_pace(p, &p->rule->snap_pace);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static tb_rc parse_side(struct parser *p, bool *seen_before, bool *seen_after) {
  uint64_t ns;

  if (!tr_time_parse(p->word, &ns) || ns > day_ns)
    return tb_fail(p->diag, TB_BROKEN,
                   "keep: \"%.40s\" is not a time of at most a day, such as 30s", shown(p));
  TB_TRY(next_word(p));
  bool is_before = word_is(p, "before");
  if (!is_before && !word_is(p, "after"))
    return tb_fail(p->diag, TB_BROKEN, "keep: expected before or after, not \"%.60s\"", shown(p));
  bool *seen = is_before ? seen_before : seen_after;
  if (*seen)
    return tb_fail(p->diag, TB_BROKEN, "keep: %s appears twice", is_before ? "before" : "after");
  *seen = true;
  *(is_before ? &p->rule->keep_before_ns : &p->rule->keep_after_ns) = ns;
  return next_word(p);
}

/* Parses "keep 30s before, 10s after": a comma before a number continues the action. */
static tb_rc parse_keep(struct parser *p) {
  bool before = false, after = false;

  TB_TRY(parse_reach(p, "keep", &p->rule->keep));
  p->rule->keep_before_ns = keep_before_ns;
  p->rule->keep_after_ns = keep_after_ns;
  while (is_digit(p->word[0])) {
    TB_TRY(parse_side(p, &before, &after));
    if (word_is(p, ",") && is_digit(p->at[strspn(p->at, " \t")])) TB_TRY(next_word(p));
  }
  return TB_OK;
}

static bool is_name(const char *word) {
  size_t len = strlen(word);

  return len > 0 && len <= TR_NAME_MAX && strspn(word, names) == len;
}

static unsigned count_actions(const char *actions) {
  unsigned n = actions[0] != '\0' ? 1 : 0;

  for (const char *c = actions; *c != '\0'; c++) n += *c == ',' ? 1 : 0;
  return n;
}

bool tr_action_is_in(const char *actions, const char *one) {
  size_t len = strlen(one);

  for (const char *at = actions; (at = strstr(at, one)) != NULL; at += len)
    if ((at == actions || at[-1] == ',') && (at[len] == ',' || at[len] == '\0')) return true;
  return false;
}

static tb_rc parse_helper(struct parser *p, const char *action) {
  char *actions = p->rule->actions, one[8 + TR_NAME_MAX + 1];

  if (p->is_by_hand)
    return tb_fail(p->diag, TB_BROKEN, "DO: %s is for rules of the file trigger.file", action);
  if (!is_name(p->word))
    return tb_fail(p->diag, TB_BROKEN, "%s: \"%.60s\" is not a name of an action", action,
                   shown(p));
  unsigned n = count_actions(actions);
  if (n == TR_ACTIONS_MAX)
    return tb_fail(p->diag, TB_BROKEN, "more than %d exec and webhook actions", TR_ACTIONS_MAX);
  snprintf(one, sizeof one, "%s:%.*s", action, TR_NAME_MAX, p->word);
  if (tr_action_is_in(actions, one))
    return tb_fail(p->diag, TB_BROKEN, "%s %s appears twice", action, p->word);
  size_t len = strlen(actions);
  snprintf(actions + len, sizeof p->rule->actions - len, "%s%s", len > 0 ? "," : "", one);
  TB_TRY(next_word(p));
  return parse_pace(p, &p->rule->action_pace[n]);
}

static tb_rc parse_exec(struct parser *p) {
  return parse_helper(p, "exec");
}

static tb_rc parse_webhook(struct parser *p) {
  return parse_helper(p, "webhook");
}

static const struct action {
  const char *word;
  tb_rc (*parse)(struct parser *p);
} actions[] = { { "alert", parse_alert },
                { "keep", parse_keep },
                { "snap", parse_snap },
                { "exec", parse_exec },
                { "webhook", parse_webhook } };

enum { ACTIONS = sizeof actions / sizeof *actions };

static tb_rc unknown_action(const struct parser *p) {
  struct tb_nearest nearest = { .word = p->word };

  for (unsigned i = 0; i < ACTIONS; i++) tb_nearest_try(&nearest, actions[i].word);
  if (nearest.best != NULL)
    return tb_fail(p->diag, TB_BROKEN, "DO: no action \"%.40s\"; did you mean \"%s\"?", p->word,
                   nearest.best);
  return tb_fail(p->diag, TB_BROKEN,
                 "DO: \"%.40s\" is not an action: alert, keep, snap, exec, webhook", shown(p));
}

static tb_rc parse_action(struct parser *p) {
  for (unsigned i = 0; i < ACTIONS; i++)
    if (word_is(p, actions[i].word)) {
      TB_TRY(next_word(p));
      return actions[i].parse(p);
    }
  return unknown_action(p);
}

static tb_rc parse_actions(struct parser *p) {
  TB_TRY(expect(p, "DO"));
  TB_TRY(parse_action(p));
  while (word_is(p, ",")) {
    TB_TRY(next_word(p));
    TB_TRY(parse_action(p));
  }
  if (p->word[0] == '\0') return TB_OK;
  return tb_fail(p->diag, TB_BROKEN, "unexpected \"%.60s\" after an action", p->word);
}

/* ---- a rule ---- */

static tb_rc parse_name(struct parser *p) {
  TB_TRY(next_word(p));
  if (word_is(p, "trigger")) TB_TRY(next_word(p));
  size_t len = strlen(p->word);
  if (!is_name(p->word))
    return tb_fail(p->diag, TB_BROKEN,
                   "\"%.60s\" is not a name: letters, digits and ._:-, at most %d", shown(p),
                   TR_NAME_MAX);
  if (strncmp(p->word, "finding.", sizeof "finding." - 1) == 0)
    return tb_fail(p->diag, TB_BROKEN, "rename \"%.60s\": names that begin with finding. are taken",
                   p->word);
  if (strncmp(p->word, "alert.", sizeof "alert." - 1) == 0)
    return tb_fail(p->diag, TB_BROKEN,
                   "rename \"%.60s\": only rules that are built in begin with alert.", p->word);
  memcpy(p->rule->name, p->word, len + 1);
  const char *begin = p->at - len;
  snprintf(p->rule->text, sizeof p->rule->text, "%s", begin);
  for (unsigned i = 0; i < p->rules->n; i++)
    if (strcmp(p->rules->rule[i]->name, p->word) == 0)
      return tb_fail(p->diag, TB_BROKEN, "there is a rule \"%s\" already", p->word);
  return next_word(p);
}

static tb_rc parse_rule(struct parser *p) {
  TB_TRY(parse_name(p));
  if (!word_is(p, "when")) return expect(p, "WHEN");
  TB_TRY(parse_terms(p));
  TB_TRY(parse_limits(p));
  return parse_actions(p);
}

static tb_rc add_rule(struct tr_rules *rules, const char *text, bool is_by_hand,
                      struct tb_diag *diag) {
  struct tb_diag why;

  if (rules->n == TR_RULES_MAX) return tb_fail(diag, TB_BUDGET, "more than %d rules", TR_RULES_MAX);
  if (strlen(text) > TR_RULE_TEXT_MAX)
    return tb_fail(diag, TB_BROKEN, "a rule has at most %d bytes", TR_RULE_TEXT_MAX);
  for (const char *c = text; *c != '\0'; c++)
    if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7F)
      return tb_fail(diag, TB_BROKEN, "a rule is one line of text: byte %zu is a control character",
                     (size_t)(c - text) + 1);
  struct tr_rule *rule = calloc(1, sizeof *rule);
  if (rule == NULL) return TB_NOMEM;
  rule->generations = 1;
  strcpy(rule->service, "*");
  strcpy(rule->instance, "*");
  tb_diag_clear(&why);
  struct parser p = {
    .rules = rules, .rule = rule, .is_by_hand = is_by_hand, .diag = &why, .at = text
  };
  tb_rc rc = parse_rule(&p);
  if (rc == TB_OK) {
    rules->rule[rules->n++] = rule;
    return TB_OK;
  }
  tb_fail(diag, rc, "%s%s%s", rule->name, rule->name[0] != '\0' ? ": " : "", why.text);
  free(rule);
  return rc;
}

tb_rc tr_rules_add(struct tr_rules *rules, const char *text, struct tb_diag *diag) {
  return add_rule(rules, text, false, diag);
}

tb_rc tr_rules_add_by_hand(struct tr_rules *rules, const char *text, struct tb_diag *diag) {
  return add_rule(rules, text, true, diag);
}

tb_rc tr_rules_add_lines(struct tr_rules *rules, const char *name, const char *text,
                         struct tb_diag *diag) {
  char line[TR_RULE_TEXT_MAX + 2];
  struct tb_diag why;

  for (unsigned number = 1; *text != '\0'; number++) {
    size_t len = strcspn(text, "\n"), shown_len = len < sizeof line - 1 ? len : sizeof line - 1;
    memcpy(line, text, shown_len);
    line[shown_len] = '\0';
    line[strcspn(line, "\r")] = '\0';
    text += len + (text[len] == '\n');
    const char *begin = line + strspn(line, " \t");
    if (*begin == '\0' || *begin == '#') continue;
    tb_diag_clear(&why);
    tb_rc rc = tr_rules_add(rules, begin, &why);
    if (rc != TB_OK) return tb_fail(diag, rc, "%s line %u: %s", name, number, why.text);
  }
  return TB_OK;
}

tb_rc tr_rules_read(struct tr_rules *rules, const char *path, struct tb_diag *diag) {
  FILE *file = tb_small_file(path);
  tb_rc rc = TB_OK;

  if (file == NULL) return tb_fail(diag, TB_IO, "%s: %s", path, tb_small_file_fault(errno));
  char *text = calloc(1, FILE_BYTES_MAX + 1);
  size_t n = text != NULL ? fread(text, 1, FILE_BYTES_MAX, file) : 0;
  if (text == NULL)
    rc = TB_NOMEM;
  else if (ferror(file))
    rc = tb_fail(diag, TB_IO, "%s: %s", path, strerror(errno));
  else if (n == FILE_BYTES_MAX || strlen(text) != n)
    rc = tb_fail(diag, TB_BROKEN, "%s: not a text file of less than 1 MiB", path);
  fclose(file);
  if (rc == TB_OK) rc = tr_rules_add_lines(rules, path, text, diag);
  free(text);
  return rc;
}

static bool fits(const char *pattern, const char *name) {
  size_t len = strlen(pattern);

  if (len > 0 && pattern[len - 1] == '*') return strncmp(pattern, name, len - 1) == 0;
  return strcmp(pattern, name) == 0;
}

bool tr_rule_is_about(const struct tr_rule *rule, const char *service, const char *instance) {
  return (service == NULL || fits(rule->service, service)) &&
         (instance == NULL || fits(rule->instance, instance));
}
