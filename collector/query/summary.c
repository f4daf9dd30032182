/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up one service, or each that is live, in sentences: its open findings, and the sums of its streams' reports. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text/hex.h"
#include "collector/query/private.h"
#include "pack/summary/summary.h"

enum {
  SERVICES_MAX = 50,
  FINDINGS_MAX = 50, /* of a service */
  ALL_MS = 6000,     /* after that the services that are left have their findings only */
  ONE_MS = 2000,
  SOURCE_BYTES = 600,
};

typedef Tracecollect__V1__SummaryRequest SummaryRequest;

struct asking {
  struct tc_query_session *s;
  const SummaryRequest *ask;
  const char *window;
  struct tb_arena
      arena; /* lives as long as the question: the session's is emptied for each service */
  struct tp_summary summary;
  uint64_t until_ns;
};

/* ---- services ---- */

struct names {
  struct tb_arena *arena;
  char **name;
  size_t n, room;
};

static bool has_name(const struct names *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->name[i], name) == 0) return true;
  return false;
}

static tb_rc add_name(struct names *names, const char *name) {
  if (names->n == SERVICES_MAX || has_name(names, name)) return TB_OK;
  TB_TRY(TB_ARENA_GROW(names->arena, names->name, names->room, names->n));
  TB_TRY(tc__query_text(names->arena, name, &names->name[names->n]));
  names->n++;
  return TB_OK;
}

static tb_rc take_live(void *self, const struct tc_report *report) {
  return report->ended_wall_ns == 0 ? add_name(self, report->service) : TB_OK;
}

static tb_rc take_any(void *self, const struct tc_report *report) {
  return add_name(self, report->service);
}

static tb_rc take_found(void *self, const struct tc_finding *f) {
  return add_name(self, f->service);
}

/* Live ones, or those that have ended if none is live; and those with open findings, even if no report is left of them. */
static tb_rc find_services(struct asking *a, struct names *out) {
  const struct tc_report_select select = { .kind = "leak", .window = a->window, .wait_ms = ONE_MS };
  const struct tc_findings_ask open = { .service = "", .is_open = true };
  struct tc_reports *reports = a->s->query->env.reports;
  struct tc_findings *findings = a->s->query->env.findings;

  *out = (struct names){ .arena = &a->arena };
  TB_TRY(tc_reports_collect(reports, &select, take_live, out));
  if (out->n == 0) TB_TRY(tc_reports_collect(reports, &select, take_any, out));
  return findings != NULL ? tc_findings_each(findings, &open, out, take_found) : TB_OK;
}

/* ---- findings ---- */

struct list {
  struct tb_arena *arena;
  const char *instance;
  struct tp_summary_finding *finding;
  size_t n;
};

static bool is_of_instance(const struct tc_finding *f, const char *instance) {
  for (unsigned i = 0; i < f->instances; i++)
    if (strcmp(f->instance[i], instance) == 0) return true;
  return instance[0] == '\0';
}

static tb_rc copy(struct tb_arena *arena, const char *text, const char **out) {
  char *copied;

  TB_TRY(tc__query_text(arena, text, &copied));
  *out = copied;
  return TB_OK;
}

static tb_rc take_finding(void *self, const struct tc_finding *f) {
  struct list *list = self;
  char id[17];

  if (tc_finding_is_muted(f, tc_wall_ns()) || !is_of_instance(f, list->instance)) return TB_OK;
  if (list->n == FINDINGS_MAX) return TB_END;
  struct tp_summary_finding *out = &list->finding[list->n];
  snprintf(id, sizeof id, "%016" PRIx64, f->id);
  *out = (struct tp_summary_finding){ .is_open = true };
  TB_TRY(copy(list->arena, f->kind, &out->kind));
  TB_TRY(copy(list->arena, f->words, &out->words));
  TB_TRY(copy(list->arena, f->place, &out->place));
  TB_TRY(copy(list->arena, f->cause, &out->cause));
  TB_TRY(copy(list->arena, id, &out->id));
  list->n++;
  return TB_OK;
}

/* A finding is of a service, or of its instances; a stream has none of its own. */
static tb_rc find_findings(struct asking *a, const char *service, struct list *out) {
  const struct tc_findings_ask which = { .service = service, .is_open = true };
  struct tc_findings *findings = a->s->query->env.findings;

  *out = (struct list){ .arena = &a->s->arena, .instance = a->ask->instance };
  if (findings == NULL || service[0] == '\0') return TB_OK;
  TB_TRY(tb_arena_alloc(out->arena, FINDINGS_MAX * sizeof *out->finding, &out->finding));
  tb_rc rc = tc_findings_each(findings, &which, out, take_finding);
  return rc == TB_END ? TB_OK : rc;
}

/* ---- a service ---- */

/* Writes the words of a command that name what is asked. */
static tb_rc write_source(struct asking *a, const char *service, char out[SOURCE_BYTES]) {
  const char *instance = a->ask->instance, *quoted;
  char hex[2 * TC_REPORT_STREAM_BYTES + 1];
  size_t n = 0;

  out[0] = '\0';
  if (a->ask->stream.len != 0) {
    tb_hex(a->ask->stream.data, TC_REPORT_STREAM_BYTES, hex);
    snprintf(out, SOURCE_BYTES, "--stream %s", hex);
    return TB_OK;
  }
  if (service[0] != '\0') {
    TB_TRY(tp_summary_quote(&a->s->arena, service, &quoted));
    snprintf(out, SOURCE_BYTES, "--service %s", quoted);
    n = strlen(out);
  }
  if (instance[0] == '\0') return TB_OK;
  TB_TRY(tp_summary_quote(&a->s->arena, instance, &quoted));
  snprintf(out + n, SOURCE_BYTES - n, "%s--instance %s", n > 0 ? " " : "", quoted);
  return TB_OK;
}

static uint32_t needed_kinds(void) {
  uint32_t kinds = 0;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (tp_summary_needs((enum to_analysis_kind)k)) kinds |= UINT32_C(1) << k;
  return kinds;
}

static tb_rc add_service(struct asking *a, const char *service) {
  struct tc_report_select select = { .service = service[0] != '\0' ? service : NULL,
                                     .instance =
                                         a->ask->instance[0] != '\0' ? a->ask->instance : NULL,
                                     .stream = a->ask->stream.len != 0 ? a->ask->stream.data : NULL,
                                     .window = a->window,
                                     .kinds = needed_kinds(),
                                     .wait_ms = ONE_MS };
  Tracecollect__V1__ReportReply sums = TRACECOLLECT__V1__REPORT_REPLY__INIT;
  char source[SOURCE_BYTES], window[24];
  struct list findings;

  tb_arena_reset(&a->s->arena);
  TB_TRY(find_findings(a, service, &findings));
  if (tc_mono_ns() < a->until_ns) TB_TRY(tc__query_sums(a->s, &select, &sums));
  TB_TRY(write_source(a, service, source));
  snprintf(window, sizeof window, " --window %s", a->window);
  const struct tp_summary_of of = { .report = sums.reports,
                                    .reports = sums.n_reports,
                                    .finding = findings.finding,
                                    .findings = findings.n,
                                    .service = service,
                                    .source = source,
                                    .window = window };
  return tp_summary_add(&a->summary, &of);
}

static tb_rc add_all(struct asking *a) {
  struct names names;

  TB_TRY(find_services(a, &names));
  for (size_t i = 0; i < names.n; i++) TB_TRY(add_service(a, names.name[i]));
  return TB_OK;
}

static tb_rc sum_up(struct asking *a, struct tb_diag *diag, Tracecollect__V1__SummaryReply **out) {
  const SummaryRequest *ask = a->ask;
  bool is_all = ask->service[0] == '\0' && ask->instance[0] == '\0' && ask->stream.len == 0;
  Tracecollect__V1__SummaryReply *reply;
  void *moved;

  if (ask->stream.len != 0 && ask->stream.len != TC_REPORT_STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  TB_TRY(is_all ? add_all(a) : add_service(a, ask->service));
  TB_TRY(tp_summary_take(&a->summary, &reply));
  reply->window = (char *)(uintptr_t)a->window;
  tb_arena_reset(&a->s->arena);
  TB_TRY(tc__query_move_in(&a->s->arena, &reply->base, &moved));
  *out = moved;
  return TB_OK;
}

static tb_rc answer_summary(struct tc_query_session *s, const SummaryRequest *ask,
                            struct tb_diag *diag, Tracecollect__V1__SummaryReply **out) {
  struct asking a = { .s = s,
                      .ask = ask,
                      .window =
                          ask->window[0] != '\0' ? ask->window : to_window_name(TO_WINDOW_1MIN),
                      .until_ns = tc_mono_ns() + ALL_MS * UINT64_C(1000000) };

  tb_arena_init(&a.arena, &s->mem, 16 << 10);
  tp_summary_init(&a.summary, &a.arena);
  tb_rc rc = sum_up(&a, diag, out);
  tb_arena_fini(&a.arena);
  return rc;
}

TC__QUESTION(summary, Summary)
