/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts for findings, and for trigger rules that fire. */
#include <inttypes.h>
#include <stdio.h>

#include "collector/analysis/feed_private.h"
#include "pack/summary/summary.h"

static const struct {
  const char *id;
  Tracecollect__V1__AlertKind kind;
} kinds[TO_FINDINGS] = {
#define KIND(ID, id)                                                                               \
  [TO_FINDING_##ID] = { "/finding/" id, TRACECOLLECT__V1__ALERT_KIND__ALERT_##ID }
  KIND(DEADLOCK, "deadlock"),   KIND(CONVOY, "convoy"),   KIND(STALL, "stall"),
  KIND(LEAK, "leak"),           KIND(ASSISTS, "assists"), KIND(STARVED, "starved"),
  KIND(MISNESTED, "misnested"),
#undef KIND
};

/* A wait of a leak or a deadlock has no end, and its words say what it is. */
void tc_finding_why(const struct to_finding *finding, to_ns now, char out[TC_WHY_BYTES]) {
  bool ends = finding->kind == TO_FINDING_CONVOY || finding->kind == TO_FINDING_STALL;

  out[0] = '\0';
  if (ends && finding->goroutine > 0) tc_why_moment(finding->goroutine, now, out);
}

static void show(struct tc_feed_encoder *source, const struct to_finding *finding, uint64_t id,
                 to_ns now) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  char text[TC__ALERT_BYTES], why[TC_WHY_BYTES], kept[17] = "";

  if (id != 0) snprintf(kept, sizeof kept, "%016" PRIx64, id);
  alert.finding = kept;
  alert.kind = kinds[finding->kind].kind;
  alert.id = (char *)(uintptr_t)kinds[finding->kind].id;
  alert.duration_ns = now > finding->since ? (uint64_t)(now - finding->since) : 0;
  alert.open = true;
  alert.begin_ns = finding->since;
  alert.goroutine = finding->goroutine;
  alert.thread = TO_NONE;
  tp_finding_words(finding, text, sizeof text);
  tc_finding_why(finding, now, why);
  tc__publish_alert(source, &alert, finding->stack, now, text, why);
}

bool tc_feed_encoder_finding(struct tc_feed_encoder *source, const struct to_finding *finding,
                             uint64_t id, to_ns now) {
  if (source->wanted) show(source, finding, id, now);
  return source->wanted;
}

static bool is_of_tasks(const struct tr_rule *rule) {
  for (unsigned i = 0; i < rule->terms; i++)
    if (!rule->term[i].is_finding && rule->term[i].kind == TO_ANALYSIS_TASKS) return true;
  return false;
}

/* The alert spans the generation. A figure of tasks is explained by the slowest task. */
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
  tc__publish_alert(source, &alert, NULL, verdict->last_ns, text,
                    is_of_tasks(fired->rule) ? "slow=*" : "");
}
