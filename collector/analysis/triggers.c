/* SPDX-License-Identifier: Apache-2.0 */
/* Each loop has a copy of the rules, renewed when their version changes. A stream is watched by the copy of its last
 * generation. */
#include <stdio.h>

#include "collector/analysis/private.h"

struct look {
  struct tc__analysed *s;
  const struct tc_verdict *verdict;
};

static void note_firing(struct tc__analysed *s, const struct tr_fired *fired, uint64_t gen,
                        to_ns at) {
  const struct tc_trigger_firing firing = {
    .fired = fired,
    .ref = s->ref,
    .stream = s->id,
    .service = s->service,
    .instance = s->instance,
    .gen = gen,
    .wall_ns = to_analyses_wall(s->analyses, at),
  };

  tc_metric_add(&s->u->env.metrics->triggers_fired_total, 1);
  tc_metric_add(&s->u->env.metrics->triggers_limited_total,
                tc_triggers_fired(s->u->env.triggers, &firing));
}

static void on_fired(void *self, const struct tr_fired *fired) {
  const struct look *look = self;
  struct tc__analysed *s = look->s;

  note_firing(s, fired, look->verdict->gen, look->verdict->last_ns);
  if (fired->rule->alert && s->feed != NULL) tc_feed_encoder_fired(s->feed, fired, look->verdict);
}

void tc__analysed_passed(void *self, const char *rule, const char *words, uint64_t gen, to_ns at) {
  struct tc__analysed *s = self;
  struct tr_rule built_in = { .alert = true };
  struct tr_fired fired = { .rule = &built_in };

  if (s->u->env.triggers == NULL) return;
  snprintf(built_in.name, sizeof built_in.name, "%s", rule);
  snprintf(fired.words, sizeof fired.words, "%s", words);
  note_firing(s, &fired, gen, at);
}

static tb_rc take_rules(struct tc_scheduler *u) {
  struct tr_rules *rules;

  if (u->rules != NULL && u->rules_version == tc_triggers_version(u->env.triggers)) return TB_OK;
  TB_TRY(tc_triggers_rules(u->env.triggers, &rules, &u->rules_version));
  tr_rules_release(u->rules);
  u->rules = rules;
  return TB_OK;
}

static tb_rc take_watch(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;

  TB_TRY(take_rules(u));
  if (s->watch != NULL && s->rules_version == u->rules_version) return TB_OK;
  tr_watch_free(TB_MOVE(s->watch));
  TB_TRY(tr_watch_new(&s->mem, u->rules, s->service, s->instance, &s->watch));
  s->rules_version = u->rules_version;
  return TB_OK;
}

void tc__analysed_look(struct tc__analysed *s, const struct tc_verdict *v) {
  struct look look = { s, v };

  if (s->u->env.triggers == NULL) return;
  tb_rc rc = take_watch(s);
  if (rc == TB_OK)
    rc = tr_watch_generation(s->watch, s->analyses, &(struct tr_fired_sink){ &look, on_fired });
  if (rc != TB_OK) tc_metric_add(&s->u->env.metrics->triggers_missed_total, 1);
}

void tc__analysed_look_at_hole(struct tc__analysed *s) {
  if (s->watch != NULL) tr_watch_hole(s->watch);
}
