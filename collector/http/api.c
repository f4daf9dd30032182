/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from the catalog and the reports, as the messages that `tracectl --json` prints. All functions run on a worker. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hex.h"
#include "collector/http/private.h"
#include "online/analysis/analysis.h"
#include "pack/report.h"
#include "pack/report_json.h"
#include "pack/trim.h"
#include "proto/json.h"

enum { SCHEMA_BYTES_MAX = 1 << 20 };

static char *text(const char *lent) {
  return (char *)(uintptr_t)lent; /* protobuf-c's fields are not const; packing does not write */
}

void tc__api_metrics(struct tc__http_job *job, struct tc_query_session *session) {
  const struct tc_http_source *source = &job->http->env.source;

  (void)session;
  tb_rc rc = source->metrics(source->self, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, "");
}

/* --- requests that are answered by one message ------------------------------------------------- */

#define ANSWER(name, Reply, call)                                                                  \
  void tc__api_##name(struct tc__http_job *job, struct tc_query_session *session) {                \
    struct tc__http_question q;                                                                    \
    Tracecollect__V1__##Reply *reply = NULL;                                                       \
    struct tb_diag diag;                                                                           \
                                                                                                   \
    if (!tc__job_question(job, &q)) return;                                                        \
    tb_diag_clear(&diag);                                                                          \
    tb_rc rc = call;                                                                               \
    tc__job_say(job, rc, &diag, rc == TB_OK ? &reply->base : NULL);                                \
    tc__question_fini(&q);                                                                         \
  }

#define ASKED(Request) ((Tracecollect__V1__##Request *)q.message)

ANSWER(streams, StatusReply, tc_query_status(session, &diag, &reply))
ANSWER(segments, ListReply, tc_query_list(session, ASKED(ListRequest), &diag, &reply))
ANSWER(firings, FiringsReply, tc_query_firings(session, ASKED(FiringsRequest), &diag, &reply))
ANSWER(findings, FindingsReply, tc_query_findings(session, ASKED(FindingsRequest), &diag, &reply))
ANSWER(summary, SummaryReply, tc_query_summary(session, ASKED(SummaryRequest), &diag, &reply))
ANSWER(triggers, TriggerReply, tc_query_triggers(session, NULL, NULL, &diag, &reply))
ANSWER(snap, SnapReply, tc_query_snap(session, ASKED(SnapRequest), &diag, &reply))
#undef ASKED
#undef ANSWER

/* --- changes of rules -------------------------------------------------------------------------- */

/* Answers with the new list of rules, or with an error; conflict: the code if the change contradicts existing rules. */
static void change_rules(struct tc__http_job *job, struct tc_query_session *session,
                         const char *add, const char *remove, tb_rc conflict) {
  Tracecollect__V1__TriggerReply *reply = NULL;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  snprintf(job->answer.what, sizeof job->answer.what, "%s", add != NULL ? add : remove);
  tb_rc rc = tc_query_triggers(session, add, remove, &diag, &reply);
  tc__job_say(job, rc, &diag, rc == TB_OK ? &reply->base : NULL);
  if (rc == TB_REFUSED) tc__answer_fail_as(&job->answer, 409, conflict, diag.text);
}

void tc__api_trigger_add(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc__http_question q;

  if (!tc__job_question(job, &q)) return;
  const char *rule = ((const Tracecollect__V1__TriggerRequest *)q.message)->add;
  if (*rule == '\0')
    tc__answer_fail(&job->answer, 400, "add: a rule is needed");
  else
    change_rules(job, session, rule, NULL, TB_BROKEN); /* conflict: the name exists already */
  if (job->answer.status == 200) job->answer.status = 201;
  tc__question_fini(&q);
}

void tc__api_trigger_remove(struct tc__http_job *job, struct tc_query_session *session) {
  const char *name = tp_route_rest(job->conn->route, job->conn->head.request.path);

  if (*name != '\0')
    change_rules(job, session, NULL, name, TB_REFUSED); /* conflict: a rule of trigger.file */
  else
    tc__answer_fail(&job->answer, 404, "the path ends with a rule's name");
}

void tc__api_finding_mute(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__FindingsReply *reply = NULL;
  struct tc__http_question q;
  struct tb_diag diag;

  if (!tc__job_question(job, &q)) return;
  const Tracecollect__V1__MuteRequest *ask = (const Tracecollect__V1__MuteRequest *)q.message;
  tb_diag_clear(&diag);
  snprintf(job->answer.what, sizeof job->answer.what, "%s %s", ask->id, ask->reason);
  tb_rc rc = tc_query_mute(session, ask, &diag, &reply);
  tc__job_say(job, rc, &diag, rc == TB_OK ? &reply->base : NULL);
  tc__question_fini(&q);
}

/* --- reports ----------------------------------------------------------------------------------- */

tb_rc tc__read_kind(const struct tc__http_conn *c, struct tb_diag *diag, const char **out) {
  enum to_analysis_kind kind;
  char known[120] = "";

  *out = tp_route_rest(c->route, c->head.request.path);
  if (strcmp(*out, "all") == 0) {
    *out = ""; /* the query's name for all kinds */
    return TB_OK;
  }
  if (to_analysis_find(*out, &kind)) return TB_OK;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, " %s", to_analysis_name((enum to_analysis_kind)k));
  }
  return tb_fail(diag, TB_NOTFOUND, "no report \"%.40s\"; there are%s", *out, known);
}

void tc__put_report(struct tb_buf *out, Tracecollect__V1__StreamReport *report, uint64_t rows) {
  tp_report_trim(report, rows);
  tp_report_json(out, report);
  tb_buf_byte(out, '\n');
}

static void put_reports(struct tc__http_job *job, size_t n,
                        Tracecollect__V1__StreamReport **reports, uint32_t rows) {
  job->answer.varies = true;
  for (size_t i = 0; i < n && tc__job_is_wanted(job); i++)
    tc__put_report(&job->answer.body, reports[i], rows);
}

static tb_rc ask_report(struct tc__http_job *job, struct tc_query_session *session,
                        Tracecollect__V1__ReportRequest *ask, struct tb_diag *diag,
                        Tracecollect__V1__ReportReply **out) {
  const char *kind;

  TB_TRY(tc__read_kind(job->conn, diag, &kind));
  ask->kind = text(kind);
  TB_TRY(tc_query_report(session, ask, diag, out));
  if ((*out)->n_reports > 0) return TB_OK;
  return tb_fail(diag, TB_NOTFOUND, "no stream matches that has a generation in order yet");
}

void tc__api_report(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__ReportReply *reply = NULL;
  struct tc__http_question q;
  struct tb_diag diag;

  if (!tc__job_question(job, &q)) return;
  tb_diag_clear(&diag);
  Tracecollect__V1__ReportRequest *ask = (Tracecollect__V1__ReportRequest *)q.message;
  tb_rc rc = ask_report(job, session, ask, &diag, &reply);
  if (rc != TB_OK || tc__wants_protobuf(job->conn))
    tc__job_say(job, rc, &diag, rc == TB_OK ? &reply->base : NULL);
  else
    put_reports(job, reply->n_reports, reply->reports, ask->top);
  tc__question_fini(&q);
}

/* ---- stored reports ---- */

/* Writes the last line, with the place to continue at. */
static void put_place(struct tb_buf *out, const Tracecollect__V1__HistoryReply *r) {
  char hex[2 * TC_REPORT_STREAM_BYTES + 1] = "";

  if (r->more && r->after_stream.len == TC_REPORT_STREAM_BYTES)
    tb_hex(r->after_stream.data, TC_REPORT_STREAM_BYTES, hex);
  tb_buf_printf(out, "{\"more\":%s", r->more ? "true" : "false");
  if (r->more) tb_buf_printf(out, ",\"after\":\"%s\",\"after_ns\":%" PRIu64, hex, r->after_ns);
  tb_buf_printf(out, ",\"damaged\":%" PRIu64 "}\n", r->damaged);
}

static tb_rc ask_history(struct tc__http_job *job, struct tc_query_session *session,
                         Tracecollect__V1__HistoryRequest *ask, struct tb_diag *diag,
                         Tracecollect__V1__HistoryReply **out) {
  const char *kind;

  TB_TRY(tc__read_kind(job->conn, diag, &kind));
  ask->kind = text(kind);
  return tc_query_history(session, ask, diag, out);
}

void tc__api_history(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__HistoryReply *reply = NULL;
  struct tc__http_question q;
  struct tb_diag diag;

  if (!tc__job_question(job, &q)) return;
  tb_diag_clear(&diag);
  Tracecollect__V1__HistoryRequest *ask = (Tracecollect__V1__HistoryRequest *)q.message;
  tb_rc rc = ask_history(job, session, ask, &diag, &reply);
  if (rc != TB_OK || tc__wants_protobuf(job->conn)) {
    tc__job_say(job, rc, &diag, rc == TB_OK ? &reply->base : NULL);
  } else {
    put_reports(job, reply->n_reports, reply->reports, ask->top);
    put_place(&job->answer.body, reply);
  }
  tc__question_fini(&q);
}

/* ---- schemas of reports ---- */

static tb_rc write_schemas(struct tb_arena *arena, struct tb_buf *out) {
  Tracecollect__V1__ReportSchema *schema;

  tb_buf_text(out, "{\"windows\":[");
  for (unsigned w = 0; w < TO_WINDOWS; w++)
    tb_buf_printf(out, "%s\"%s\"", w > 0 ? "," : "", to_window_name((enum to_window)w));
  tb_buf_text(out, "],\"reports\":[");
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    if (k > 0) tb_buf_byte(out, ',');
    TB_TRY(tp_take_schema(arena, (enum to_analysis_kind)k, &schema));
    tp_schema_json(out, schema);
  }
  tb_buf_text(out, "]}\n");
  return TB_OK;
}

void tc__api_reports(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc__http_question q;
  struct tb_arena arena;
  struct tb_mem mem;

  (void)session;
  if (!tc__job_question(job, &q)) return;
  tc__question_fini(&q);
  tb_mem_init(&mem, tb_mem_libc, NULL, SCHEMA_BYTES_MAX);
  tb_arena_init(&arena, &mem, 16 << 10);
  tb_rc rc = write_schemas(&arena, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, "");
  tb_arena_fini(&arena);
}
