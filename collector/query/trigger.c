/* SPDX-License-Identifier: Apache-2.0 */
/* Trigger rules and their firings. */
#include <string.h>

#include "collector/query/private.h"
#include "collector/trigger/triggers.h"
#include "pack/text.h"

struct rule_list {
  struct tb_arena *arena;
  Tracecollect__V1__TriggerReply *reply;
};

static tb_rc copy(struct tb_arena *arena, const char *text, char **out) {
  return tp_copy_text(arena, (struct to_string){ text, strlen(text) }, out);
}

static tb_rc add_rule(void *self, const struct tc_trigger_status *status, const char *text) {
  const struct rule_list *list = self;
  Tracecollect__V1__TriggerRule *rule;

  TB_TRY(tb_arena_alloc(list->arena, sizeof *rule, &rule));
  tracecollect__v1__trigger_rule__init(rule);
  TB_TRY(copy(list->arena, status->name, &rule->name));
  TB_TRY(copy(list->arena, text, &rule->text));
  rule->added = status->is_added;
  rule->limited = status->limited;
  list->reply->rules[list->reply->n_rules++] = rule;
  if (status->fired == 0) return TB_OK;
  rule->fired = status->fired;
  TB_TRY(tc__query_bytes(list->arena, status->stream, sizeof status->stream, &rule->stream));
  TB_TRY(copy(list->arena, status->service, &rule->service));
  TB_TRY(copy(list->arena, status->instance, &rule->instance));
  rule->gen = status->gen;
  rule->wall_ns = status->wall_ns;
  return copy(list->arena, status->words, &rule->words);
}

struct firing_list {
  struct tb_arena *arena;
  Tracecollect__V1__FiringsReply *reply;
};

/* Splits a comma-separated list. */
static tb_rc copy_actions(struct tb_arena *arena, const char *actions, size_t *out_n, char ***out) {
  char *copied, *rest;

  if (actions[0] == '\0') return TB_OK;
  TB_TRY(copy(arena, actions, &copied));
  TB_TRY(tb_arena_alloc(arena, (TR_ACTIONS_MAX + 1) * sizeof **out, out));
  for (rest = copied; rest != NULL && *out_n < TR_ACTIONS_MAX + 1;)
    (*out)[(*out_n)++] = strsep(&rest, ",");
  return TB_OK;
}

static tb_rc add_firing(void *self, const struct tc_firing *firing) {
  struct firing_list *list = self;
  Tracecollect__V1__FiringsReply *reply = list->reply;
  Tracecollect__V1__Firing *out;

  if (reply->n_firings == TC_FIRINGS_ANSWER_MAX) {
    reply->more = true;
    return TB_END;
  }
  TB_TRY(tb_arena_alloc(list->arena, sizeof *out, &out));
  tracecollect__v1__firing__init(out);
  out->id = firing->id;
  out->gen = firing->gen;
  out->wall_ns = firing->wall_ns;
  TB_TRY(tc__query_bytes(list->arena, firing->stream, sizeof firing->stream, &out->stream));
  TB_TRY(copy(list->arena, firing->rule, &out->rule));
  TB_TRY(copy(list->arena, firing->service, &out->service));
  TB_TRY(copy(list->arena, firing->instance, &out->instance));
  TB_TRY(copy(list->arena, firing->words, &out->words));
  TB_TRY(copy_actions(list->arena, firing->actions, &out->n_actions, &out->actions));
  TB_TRY(copy_actions(list->arena, firing->limited, &out->n_limited, &out->limited));
  reply->firings[reply->n_firings++] = out;
  return TB_OK;
}

static tb_rc answer_firings(struct tc_query_session *s, const Tracecollect__V1__FiringsRequest *ask,
                            struct tb_diag *diag, Tracecollect__V1__FiringsReply **out) {
  struct firing_list list = { .arena = &s->arena };

  if (s->query->env.triggers == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector has no rules");
  const struct tc_firings_ask which = { .after = ask->after,
                                        .rule = ask->rule,
                                        .newest = ask->newest < TC_FIRINGS_ANSWER_MAX
                                                      ? ask->newest
                                                      : TC_FIRINGS_ANSWER_MAX,
                                        .newest_of_rule = ask->newest_of_rule };
  TB_TRY(tb_arena_alloc(&s->arena, sizeof *list.reply, &list.reply));
  tracecollect__v1__firings_reply__init(list.reply);
  TB_TRY(tb_arena_alloc(&s->arena, TC_FIRINGS_ANSWER_MAX * sizeof *list.reply->firings,
                        &list.reply->firings));
  tb_rc rc =
      tc_firings_each(tc_triggers_firings(s->query->env.triggers), &which, &list, add_firing);
  *out = list.reply;
  return rc == TB_END ? TB_OK : rc;
}

static tb_rc answer_triggers(struct tc_query_session *s, const char *add, const char *remove,
                             struct tb_diag *diag, Tracecollect__V1__TriggerReply **out) {
  struct rule_list list = { .arena = &s->arena };

  if (s->query->env.triggers == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector has no rules");
  if (add != NULL) TB_TRY(tc_triggers_add(s->query->env.triggers, add, diag));
  if (remove != NULL) TB_TRY(tc_triggers_remove(s->query->env.triggers, remove, diag));
  TB_TRY(tb_arena_alloc(&s->arena, sizeof *list.reply, &list.reply));
  tracecollect__v1__trigger_reply__init(list.reply);
  TB_TRY(tb_arena_alloc(&s->arena, TR_RULES_MAX * sizeof *list.reply->rules, &list.reply->rules));
  TB_TRY(tc_triggers_each(s->query->env.triggers, &list, add_rule));
  *out = list.reply;
  return TB_OK;
}

TC__QUESTION(firings, Firings)

tb_rc tc_query_triggers(struct tc_query_session *s, const char *add, const char *remove,
                        struct tb_diag *diag, Tracecollect__V1__TriggerReply **out) {
  tb_arena_reset(&s->arena);
  return tc__query_end(s, answer_triggers(s, add, remove, diag, out), diag);
}
