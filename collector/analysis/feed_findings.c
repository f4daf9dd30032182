/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts for findings that begin, and for trigger rules that fire. A finding that continues is recognised by kind and key and is
 * not alerted again. If there was no subscriber when it began, the first subscriber is alerted at the end of the next generation.
 * Rules count repetitions themselves. */
#include <inttypes.h>
#include <stdio.h>

#include "collector/analysis/feed_private.h"

/* Text before and after the count of goroutines, if the finding has a count. */
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

static void show(struct tc_feed_encoder *source, const struct to_finding *finding, to_ns now) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  char text[TC__ALERT_BYTES], count[40] = "";

  alert.kind = kinds[finding->kind].kind;
  alert.id = (char *)(uintptr_t)kinds[finding->kind].id;
  alert.duration_ns = now > finding->since ? (uint64_t)(now - finding->since) : 0;
  alert.open = true;
  alert.begin_ns = finding->since;
  alert.goroutine = finding->goroutine;
  alert.thread = TO_NONE;
  if (finding->count > 0)
    snprintf(count, sizeof count, "%" PRIu64 " goroutine%s", finding->count,
             finding->count == 1 ? "" : "s");
  snprintf(text, sizeof text, "%s%s%s%s%.*s", kinds[finding->kind].before, count,
           kinds[finding->kind].after, finding->words.len > 0 ? ": " : "", (int)finding->words.len,
           finding->words.data);
  tc__publish_alert(source, &alert, finding->stack, now, text);
}

static struct tc__finding *find_known(struct tc__findings *f, const struct to_finding *finding) {
  for (unsigned i = 0; i < f->n; i++)
    if (f->at[i].kind == finding->kind && f->at[i].key == finding->key) return &f->at[i];
  return NULL;
}

struct round {
  struct tc_feed_encoder *source;
  to_ns now;
};

static void take_finding(void *self, const struct to_finding *finding) {
  const struct round *round = self;
  struct tc_feed_encoder *source = round->source;
  struct tc__findings *f = &source->findings;
  struct tc__finding *known = find_known(f, finding);

  if ((f->wanted >> finding->kind & 1) == 0) return;
  if (known == NULL) {
    if (f->n == TC__FINDINGS_MAX) return; /* the reports still list all findings */
    tc_metric_add(&source->env.metrics->alerts_total, 1);
    known = &f->at[f->n++];
    *known = (struct tc__finding){ .key = finding->key, .kind = (uint8_t)finding->kind };
  }
  known->seen = f->round;
  if (known->is_shown || !source->wanted) return;
  known->is_shown = true;
  show(source, finding, round->now);
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
  tb_rc rc =
      to_analyses_findings(source->analyses, &(struct to_finding_sink){ &round, take_finding });
  if (rc != TB_OK) tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
  forget_ended(&source->findings);
}

bool tc_feed_encoder_has_findings(const struct tc_feed_encoder *source) {
  return source->findings.n > 0;
}

/* The alert spans the generation. */
void tc_feed_encoder_fired(struct tc_feed_encoder *source, const struct tr_fired *fired,
                           const struct tc_verdict *verdict) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  char id[sizeof "/trigger/" + TR_NAME_MAX], text[TR_NAME_MAX + TR_WORDS_MAX + 4];

  tc_metric_add(&source->env.metrics->alerts_total, 1);
  if (!source->wanted) return;
  snprintf(id, sizeof id, "/trigger/%s", fired->rule->name);
  snprintf(text, sizeof text, "%s: %s", fired->rule->name, fired->words);
  alert.kind = TRACECOLLECT__V1__ALERT_KIND__ALERT_TRIGGER;
  alert.id = id;
  alert.begin_ns = verdict->first_ns;
  alert.duration_ns = (uint64_t)(verdict->last_ns - verdict->first_ns);
  alert.goroutine = alert.thread = TO_NONE;
  tc__publish_alert(source, &alert, NULL, verdict->last_ns, text);
}
