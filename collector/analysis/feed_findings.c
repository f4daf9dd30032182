/* SPDX-License-Identifier: Apache-2.0 */
/* alert: a finding began. One that goes on is known by its kind and key, and is no second alert; where there was no subscriber, the
 * first one learns of it at the end of the next generation. And: a rule fired, which has a count of its own of what goes on. */
#include <inttypes.h>
#include <stdio.h>

#include "collector/analysis/feed_private.h"
#include "pack/text.h"

enum { LINE_BYTES = 1536 };

/* The text before and after a count of goroutines, where there is one. */
static const struct {
  const char *id, *before, *after;
  Tracecollect__V1__AlertKind kind;
} kinds[TO_FINDINGS] = {
#define KIND(ID, id, before, after)                                                                \
  [TO_FINDING_##ID] = { "/finding/" id, before, after, TRACECOLLECT__V1__ALERT_KIND__ALERT_##ID }
  KIND(DEADLOCK, "deadlock", "suspected deadlock of ", ""),
  KIND(CONVOY, "convoy", "convoy of ", ""),
  KIND(STALL, "stall", "a system call holds up ", ""),
  KIND(LEAK, "leak", "", " may never end"),
  KIND(ASSISTS, "assists", "goroutines help the garbage collector", ""),
  KIND(STARVED, "starved", "goroutines wait for Ps", ""),
  KIND(MISNESTED, "misnested", "regions end in the wrong order", ""),
#undef KIND
};

static tb_rc fill_text(struct tc_feed_encoder *source, const struct to_finding *finding,
                       Tracecollect__V1__Alert *alert) {
  char count[40] = "";
  void *line;

  TB_TRY(tb_arena_take(&source->arena, LINE_BYTES, &line));
  if (finding->count > 0)
    snprintf(count, sizeof count, "%" PRIu64 " goroutine%s", finding->count,
             finding->count == 1 ? "" : "s");
  snprintf(line, LINE_BYTES, "%s/%s: %s%s%s%s%.*s", source->origin.service, source->origin.instance,
           kinds[finding->kind].before, count, kinds[finding->kind].after,
           finding->words.len > 0 ? ": " : "", (int)finding->words.len, finding->words.data);
  alert->text = line;
  return TB_OK;
}

static tb_rc fill(struct tc_feed_encoder *source, const struct to_finding *finding, to_ns now,
                  Tracecollect__V1__Alert *alert) {
  alert->kind = kinds[finding->kind].kind;
  alert->id = (char *)(uintptr_t)kinds[finding->kind].id;
  alert->duration_ns = now > finding->since ? (uint64_t)(now - finding->since) : 0;
  alert->open = true;
  alert->begin_ns = finding->since;
  alert->begin_wall_ns = to_analyses_wall(source->analyses, finding->since);
  alert->goroutine = finding->goroutine;
  alert->thread = TO_NONE;
  TB_TRY(tp_take_stack(&source->arena, finding->stack, &alert->n_stack, &alert->stack));
  TB_TRY(fill_text(source, finding, alert));
  return tc__source_fetch_line(source, source->gen, source->gen, &alert->fetch);
}

static struct tc__finding *find(struct tc__findings *f, const struct to_finding *finding) {
  for (unsigned i = 0; i < f->n; i++)
    if (f->at[i].kind == finding->kind && f->at[i].key == finding->key) return &f->at[i];
  return NULL;
}

struct round {
  struct tc_feed_encoder *source;
  to_ns now;
};

static void take(void *self, const struct to_finding *finding) {
  const struct round *round = self;
  struct tc_feed_encoder *source = round->source;
  struct tc__findings *f = &source->findings;
  struct tc__finding *known = find(f, finding);
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;

  if ((f->wanted >> finding->kind & 1) == 0) return;
  if (known == NULL) {
    if (f->n == TC__FINDINGS_MAX) return; /* the reports list all of them */
    tc_metric_add(&source->env.metrics->alerts_total, 1);
    known = &f->at[f->n++];
    *known = (struct tc__finding){ .key = finding->key, .kind = (uint8_t)finding->kind };
  }
  known->seen = f->round;
  if (known->is_shown || !source->wanted) return;
  known->is_shown = true;
  if (fill(source, finding, round->now, &alert) == TB_OK)
    tc__publish_alert(source, &alert, round->now);
  else
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
}

static void forget_ended(struct tc__findings *f) {
  unsigned n = 0;

  for (unsigned i = 0; i < f->n; i++)
    if (f->at[i].seen == f->round) f->at[n++] = f->at[i];
  f->n = n;
}

void tc_feed_encoder_findings(struct tc_feed_encoder *source, to_ns last_ns) {
  struct round round = { source, last_ns };

  if (source->analyses == NULL || source->findings.wanted == 0) return;
  source->findings.round++;
  tb_rc rc = to_analyses_findings(source->analyses, &(struct to_finding_sink){ &round, take });
  if (rc != TB_OK) tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
  forget_ended(&source->findings);
}

/* --- rules of triggers ------------------------------------------------------------------------- */

/* Its time is the generation's. */
static tb_rc fill_fired(struct tc_feed_encoder *source, const struct tr_fired *fired,
                        const struct tc_verdict *verdict, Tracecollect__V1__Alert *alert) {
  enum { ID_BYTES = sizeof "/trigger/" + TR_NAME_MAX };
  char line[LINE_BYTES];
  void *id;

  TB_TRY(tb_arena_take(&source->arena, ID_BYTES, &id));
  snprintf(id, ID_BYTES, "/trigger/%s", fired->rule->name);
  int len = snprintf(line, sizeof line, "%s/%s: %s: %s", source->origin.service,
                     source->origin.instance, fired->rule->name, fired->words);
  alert->kind = TRACECOLLECT__V1__ALERT_KIND__ALERT_TRIGGER;
  alert->id = id;
  alert->begin_ns = verdict->first_ns;
  alert->begin_wall_ns = to_analyses_wall(source->analyses, verdict->first_ns);
  alert->duration_ns = (uint64_t)(verdict->last_ns - verdict->first_ns);
  alert->goroutine = alert->thread = TO_NONE;
  TB_TRY(tp_copy_text(&source->arena, (struct to_string){ line, (size_t)len }, &alert->text));
  return tc__source_fetch_line(source, source->gen, source->gen, &alert->fetch);
}

void tc_feed_encoder_fired(struct tc_feed_encoder *source, const struct tr_fired *fired,
                           const struct tc_verdict *verdict) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;

  tc_metric_add(&source->env.metrics->alerts_total, 1);
  if (!source->wanted) return;
  if (fill_fired(source, fired, verdict, &alert) == TB_OK)
    tc__publish_alert(source, &alert, verdict->last_ns);
  else
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
}
