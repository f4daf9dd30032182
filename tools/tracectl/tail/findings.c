/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts of the past: a collector keeps findings, not alerts. Each finding is printed as the alert with which it last began. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/times.h"
#include "pack/topic.h"
#include "tools/tracectl/tail/message.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

enum { ID_BYTES = 64, TEXT_BYTES = 1400 };

typedef Tracecollect__V1__Finding finding;

static const struct {
  const char *kind, *id; /* id: of its alerts; NULL: /finding/KIND */
  Tracecollect__V1__AlertKind alert;
} kinds[] = {
#define FINDING(kind, ID)                                                                          \
  { kind, NULL, TRACECOLLECT__V1__ALERT_KIND__ALERT_##ID }
  FINDING("deadlock", DEADLOCK),
  FINDING("convoy", CONVOY),
  FINDING("stall", STALL),
  FINDING("leak", LEAK),
  FINDING("assists", ASSISTS),
  FINDING("starved", STARVED),
  FINDING("misnested", MISNESTED),
#undef FINDING
  { "slow_task", "/task/slow", TRACECOLLECT__V1__ALERT_KIND__ALERT_TASK },
  { "long_stop", "", TRACECOLLECT__V1__ALERT_KIND__ALERT_STW }, /* its cause */
  { "blocked_call", "/syscall/blocked", TRACECOLLECT__V1__ALERT_KIND__ALERT_SYSCALL_BLOCKED },
};

static void set_kind(const finding *f, char id[ID_BYTES], Tracecollect__V1__Alert *alert) {
  snprintf(id, ID_BYTES, "/finding/%s", f->kind);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].kind, f->kind) != 0) continue;
    alert->kind = kinds[i].alert;
    if (kinds[i].id != NULL)
      snprintf(id, ID_BYTES, "%s", kinds[i].id[0] != '\0' ? kinds[i].id : f->cause);
  }
  alert->id = id;
}

static uint64_t time_of(const char *text) {
  uint64_t wall_ns = 0;

  return tc_time_parse(text, 0, NULL, &wall_ns) == TB_OK ? wall_ns : 0;
}

static const char *instance_of(const finding *f) {
  return f->n_instances > 0 ? f->instances[f->n_instances - 1] : "";
}

static tb_rc print_finding(struct tk_lines *lines, const finding *f) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT, *alerts = &alert;
  char id[ID_BYTES], text[TEXT_BYTES], topic[TC_FEED_TOPIC_BYTES], times[40] = "";
  const Tracecollect__V1__FindingTime *last = f->history[f->n_history - 1];

  if (f->count > 1) snprintf(times, sizeof times, "; %" PRIu64 " times so far", f->count);
  snprintf(text, sizeof text, "%s/%s: %s%s", f->service, instance_of(f), f->words, times);
  set_kind(f, id, &alert);
  alert.text = text;
  alert.open = f->open;
  alert.begin_wall_ns = time_of(last->began_at);
  uint64_t until = time_of(last->last_at);
  alert.duration_ns = until > alert.begin_wall_ns ? until - alert.begin_wall_ns : 0;
  alert.goroutine = alert.thread = -1;
  alert.finding = f->id;
  alert.fetch = f->fetch;
  alert.why = f->why;
  message.stream = f->stream;
  message.service = f->service;
  message.instance = (char *)(uintptr_t)instance_of(f);
  message.generation = f->gen;
  message.from_wall_ns = alert.begin_wall_ns;
  message.until_wall_ns = until;
  message.alerts = &alerts;
  message.n_alerts = 1;
  tc_feed_topic(topic, f->service, instance_of(f), TC_FEED_ALERT);
  return tk_message_print(lines, topic, &message);
}

static int by_begin(const void *x, const void *y) {
  const finding *a = *(finding *const *)x, *b = *(finding *const *)y;

  return strcmp(a->history[a->n_history - 1]->began_at, b->history[b->n_history - 1]->began_at);
}

static bool is_wanted(const struct tk_tail_ask *ask, const finding *f) {
  return f->n_history > 0 && f->stream.len == 16 &&
         tk_tail_wants(ask, f->service, instance_of(f), f->stream.data);
}

tb_rc tk_tail_findings(const struct tk_tail_ask *ask, struct tk_lines *lines,
                       struct tb_diag *diag) {
  Tracecollect__V1__FindingsRequest request = TRACECOLLECT__V1__FINDINGS_REQUEST__INIT;
  const Tracecollect__V1__FindingsReply *reply;
  struct tk_client *client;

  request.since_ns = ask->selector.since_wall_ns;
  TB_TRY(tk_client_open(&ask->client, diag, &client));
  tb_rc rc = tk_client_ask(client, TP_ROUTE_FINDINGS, "", &request.base, diag, &reply);
  if (rc == TB_OK && reply->more)
    tk_lines_note(lines, true, "there are more than %zu findings since then", reply->n_findings);
  if (rc == TB_OK) qsort(reply->findings, reply->n_findings, sizeof(finding *), by_begin);
  for (size_t i = 0; rc == TB_OK && i < reply->n_findings; i++)
    if (is_wanted(ask, reply->findings[i])) rc = print_finding(lines, reply->findings[i]);
  tk_client_close(client);
  tk_lines_flush(lines);
  return rc;
}
