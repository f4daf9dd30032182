/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of triggers: shown to every reader, changed by those of this host only. */
#include <string.h>

#include "collector/query/private.h"
#include "collector/trigger/triggers.h"
#include "pack/text.h"

static bool is_of_this_host(const struct tc__worker *w) {
  nng_sockaddr address;

  return nng_pipe_get_addr(w->pipe, NNG_OPT_REMADDR, &address) == 0 &&
         address.s_family == NNG_AF_IPC;
}

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

  TB_TRY(tb_arena_take(list->arena, sizeof *rule, &rule));
  tracecollect__v1__trigger_rule__init(rule);
  TB_TRY(copy(list->arena, status->name, &rule->name));
  TB_TRY(copy(list->arena, text, &rule->text));
  rule->added = status->is_added;
  list->reply->rules[list->reply->n_rules++] = rule;
  if (status->fired == 0) return TB_OK;
  rule->fired = status->fired;
  TB_TRY(tb_arena_copy(list->arena, status->stream, sizeof status->stream, &rule->stream.data));
  rule->stream.len = sizeof status->stream;
  TB_TRY(copy(list->arena, status->service, &rule->service));
  TB_TRY(copy(list->arena, status->instance, &rule->instance));
  rule->gen = status->gen;
  rule->wall_ns = status->wall_ns;
  return copy(list->arena, status->words, &rule->words);
}

static tb_rc change(struct tc__worker *w, const Tracecollect__V1__TriggerRequest *ask,
                    struct tb_diag *diag) {
  struct tc_triggers *triggers = w->archive->env.triggers;

  if (*ask->add == '\0' && *ask->remove == '\0') return TB_OK;
  if (!is_of_this_host(w))
    return tb_fail(diag, TB_REFUSED, "rules are changed on the collector's own host only (ipc://)");
  if (*ask->add != '\0') TB_TRY(tc_triggers_add(triggers, ask->add, diag));
  return *ask->remove != '\0' ? tc_triggers_remove(triggers, ask->remove, diag) : TB_OK;
}

tb_rc tc__archive_trigger(struct tc__worker *w, const Tracecollect__V1__TriggerRequest *ask,
                          struct tb_diag *diag, Tracecollect__V1__TriggerReply **out) {
  struct rule_list list = { .arena = &w->arena };

  if (w->archive->env.triggers == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector has no rules");
  TB_TRY(change(w, ask, diag));
  TB_TRY(tb_arena_take(&w->arena, sizeof *list.reply, &list.reply));
  tracecollect__v1__trigger_reply__init(list.reply);
  TB_TRY(tb_arena_take(&w->arena, TR_RULES_MAX * sizeof *list.reply->rules, &list.reply->rules));
  TB_TRY(tc_triggers_each(w->archive->env.triggers, &list, add_rule));
  *out = list.reply;
  return TB_OK;
}
