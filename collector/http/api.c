/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the catalog and the reports, in JSON: the same messages as `tracectl --json` prints. All
 * of this runs on a worker. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/clock.h"
#include "base/hex.h"
#include "collector/http/private.h"
#include "collector/http/query.h"
#include "config/times.h"
#include "pack/report.h"
#include "pack/report_json.h"
#include "pack/trim.h"
#include "proto/json.h"

enum { SEGMENTS_MAX = 1000, SCHEMA_BYTES_MAX = 1 << 20, STREAM_HEX = 2 * TC_REPORT_STREAM_BYTES };

static char *text(const char *lent) {
  return (char *)(uintptr_t)lent; /* protobuf-c's fields are not const; packing does not write */
}

static void fail(struct tc__http_job *job, tb_rc rc, const struct tb_diag *diag) {
  tc__answer_fail_rc(&job->answer, rc, diag->text);
}

static void put_line(struct tc__http_job *job, const ProtobufCMessage *message) {
  tp_json_message(&job->answer.body, message);
  tb_buf_byte(&job->answer.body, '\n');
}

static bool no_parameters(struct tc__http_job *job) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tc_http_query(job->conn->head.request.query, NULL, 0, &diag);
  if (rc != TB_OK) fail(job, rc, &diag);
  return rc == TB_OK;
}

void tc__api_metrics(struct tc__http_job *job, struct tc_query_session *session) {
  const struct tc_http_source *source = &job->http->env.source;

  (void)session;
  tb_rc rc = source->metrics(source->self, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, "");
}

void tc__api_streams(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__StatusReply *reply;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (!no_parameters(job)) return;
  tb_rc rc = tc_query_status(session, &diag, &reply);
  if (rc == TB_OK)
    put_line(job, &reply->base);
  else
    fail(job, rc, &diag);
}

void tc__api_triggers(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__TriggerRequest list = TRACECOLLECT__V1__TRIGGER_REQUEST__INIT;
  Tracecollect__V1__TriggerReply *reply;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (!no_parameters(job)) return;
  tb_rc rc = tc_query_triggers(session, &list, &diag, &reply);
  if (rc == TB_OK)
    put_line(job, &reply->base);
  else
    fail(job, rc, &diag);
}

static tb_rc read_firings_query(char *query, Tracecollect__V1__FiringsRequest *firings,
                                struct tb_diag *diag) {
  const char *after = "0", *newest = "0", *of_rule = "0", *rule = "";
  const struct tc_http_param params[] = {
    { "after", &after }, { "newest", &newest }, { "newest_of_rule", &of_rule }, { "rule", &rule }
  };
  uint64_t number;

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tp_query_number("after", after, 0, UINT64_MAX, diag, &firings->after));
  TB_TRY(tp_query_number("newest", newest, 0, TC_FIRINGS_ANSWER_MAX, diag, &number));
  firings->newest = (uint32_t)number;
  TB_TRY(tp_query_number("newest_of_rule", of_rule, 0, TC_FIRINGS_ANSWER_MAX, diag, &number));
  firings->newest_of_rule = (uint32_t)number;
  firings->rule = text(rule);
  return TB_OK;
}

void tc__api_firings(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__FiringsRequest firings = TRACECOLLECT__V1__FIRINGS_REQUEST__INIT;
  Tracecollect__V1__FiringsReply *reply;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = read_firings_query(job->conn->head.request.query, &firings, &diag);
  if (rc == TB_OK) rc = tc_query_firings(session, &firings, &diag, &reply);
  if (rc == TB_OK)
    put_line(job, &reply->base);
  else
    fail(job, rc, &diag);
}

/* --- segments ---------------------------------------------------------------------------------- */

tb_rc tc__read_time(const char *name, const char *value, struct tb_diag *diag, uint64_t *out) {
  struct tb_diag why;

  tb_diag_clear(&why);
  if (value == NULL || tc_time_parse(value, tc_wall_ns(), &why, out) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_PROTOCOL, "%s: %.150s", name, why.text);
}

static tb_rc read_segments_query(char *query, Tracecollect__V1__ListRequest *list,
                                 struct tb_diag *diag) {
  const char *service = "", *instance = "", *since = NULL, *until = NULL;
  const char *arrived_since = NULL, *arrived_until = NULL;
  const char *limit = "100", *after = "0", *newest = "0";
  const struct tc_http_param params[] = {
    { "service", &service },
    { "instance", &instance },
    { "since", &since },
    { "until", &until },
    { "limit", &limit },
    { "after", &after },
    { "arrived_since", &arrived_since },
    { "arrived_until", &arrived_until },
    { "newest", &newest },
  };
  uint64_t number;

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  list->selector->service = text(service);
  list->selector->instance = text(instance);
  TB_TRY(tc__read_time("since", since, diag, &list->selector->since_wall_ns));
  TB_TRY(tc__read_time("until", until, diag, &list->selector->until_wall_ns));
  TB_TRY(tc__read_time("arrived_since", arrived_since, diag, &list->selector->since_arrival_ns));
  TB_TRY(tc__read_time("arrived_until", arrived_until, diag, &list->selector->until_arrival_ns));
  TB_TRY(tp_query_number("limit", limit, 1, SEGMENTS_MAX, diag, &number));
  list->limit = (uint32_t)number;
  TB_TRY(tp_query_number("newest", newest, 0, 1, diag, &number));
  list->newest_first = number != 0;
  return tp_query_number("after", after, 0, INT64_MAX, diag, &list->after);
}

void tc__api_segments(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__Selector selector = TRACECOLLECT__V1__SELECTOR__INIT;
  Tracecollect__V1__ListReply *reply;
  struct tb_diag diag;

  list.selector = &selector;
  tb_diag_clear(&diag);
  tb_rc rc = read_segments_query(job->conn->head.request.query, &list, &diag);
  if (rc == TB_OK) rc = tc_query_list(session, &list, &diag, &reply);
  if (rc == TB_OK)
    put_line(job, &reply->base);
  else
    fail(job, rc, &diag);
}

/* --- reports ----------------------------------------------------------------------------------- */

tb_rc tc__read_kind(const char *path, const char *prefix, struct tb_diag *diag, const char **out) {
  enum to_analysis_kind kind;
  char known[120] = "";

  *out = path + strlen(prefix);
  if (strcmp(*out, "all") == 0) {
    *out = ""; /* the archive's word for it */
    return TB_OK;
  }
  if (to_analysis_find(*out, &kind)) return TB_OK;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, " %s", to_analysis_name((enum to_analysis_kind)k));
  }
  return tb_fail(diag, TB_NOTFOUND, "no report \"%.40s\"; there are%s", *out, known);
}

tb_rc tc__read_stream_id(const char *name, const char *hex, struct tb_diag *diag,
                         unsigned char out[TC_REPORT_STREAM_BYTES]) {
  size_t digits = strspn(hex, "0123456789abcdef");

  if (digits != STREAM_HEX || hex[digits] != '\0')
    return tb_fail(diag, TB_PROTOCOL, "%s=%.40s is no id of 32 hexadecimal digits", name, hex);
  for (size_t i = 0; i < TC_REPORT_STREAM_BYTES; i++) (void)!sscanf(hex + 2 * i, "%2hhx", &out[i]);
  return TB_OK;
}

static tb_rc read_id(const char *name, const char *hex, struct tb_diag *diag,
                     unsigned char id[TC_REPORT_STREAM_BYTES], ProtobufCBinaryData *out) {
  if (*hex == '\0') return TB_OK;
  TB_TRY(tc__read_stream_id(name, hex, diag, id));
  *out = (ProtobufCBinaryData){ TC_REPORT_STREAM_BYTES, id };
  return TB_OK;
}

static tb_rc read_report_query(struct tc_http_request *r, Tracecollect__V1__ReportRequest *report,
                               unsigned char id[TC_REPORT_STREAM_BYTES], uint64_t *rows,
                               struct tb_diag *diag) {
  const char *service = "", *instance = "", *stream = "", *window = "all", *top = NULL, *kind;
  const struct tc_http_param params[] = {
    { "service", &service }, { "instance", &instance }, { "stream", &stream },
    { "window", &window },   { "top", &top },
  };
  enum to_window known;

  TB_TRY(tc__read_kind(r->path, "/api/v1/report/", diag, &kind));
  TB_TRY(tc_http_query(r->query, params, sizeof params / sizeof params[0], diag));
  if (!to_window_find(window, &known))
    return tb_fail(diag, TB_PROTOCOL, "window=%.40s is none of 10s, 1m, 5m, all", window);
  if (top != NULL) TB_TRY(tp_query_number("top", top, 0, 1000000, diag, rows));
  TB_TRY(read_id("stream", stream, diag, id, &report->stream));
  report->kind = text(kind);
  report->service = text(service);
  report->instance = text(instance);
  report->window = text(window);
  return TB_OK;
}

void tc__put_report(struct tb_buf *out, Tracecollect__V1__StreamReport *report, uint64_t rows) {
  tp_report_trim(report, rows);
  tp_report_json(out, report);
  tb_buf_byte(out, '\n');
}

void tc__api_report(struct tc__http_job *job, struct tc_query_session *session) {
  Tracecollect__V1__ReportRequest report = TRACECOLLECT__V1__REPORT_REQUEST__INIT;
  Tracecollect__V1__ReportReply *reply;
  unsigned char id[TC_REPORT_STREAM_BYTES];
  uint64_t rows = TP_REPORT_ROWS_SHOWN;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = read_report_query(&job->conn->head.request, &report, id, &rows, &diag);
  if (rc == TB_OK) rc = tc_query_report(session, &report, &diag, &reply);
  if (rc != TB_OK) {
    fail(job, rc, &diag);
    return;
  }
  if (reply->n_reports == 0) {
    tc__answer_fail(&job->answer, 404, "no stream matches that has a generation in order yet");
    return;
  }
  for (size_t i = 0; i < reply->n_reports && tc__job_is_wanted(job); i++)
    tc__put_report(&job->answer.body, reply->reports[i], rows);
}

/* ---- reports that were kept ---- */

struct history_query {
  Tracecollect__V1__HistoryRequest history;
  Tracecollect__V1__Selector selector;
  unsigned char stream[TC_REPORT_STREAM_BYTES], after_stream[TC_REPORT_STREAM_BYTES];
  uint64_t figures_only, rows;
};

static tb_rc read_history_query(struct tc_http_request *r, struct history_query *q,
                                struct tb_diag *diag) {
  const char *service = "", *instance = "", *stream = "", *since = NULL, *until = NULL;
  const char *figures = "0", *top = NULL, *after_stream = "", *after_ns = "0", *table = "", *kind;
  const struct tc_http_param params[] = {
    { "service", &service }, { "instance", &instance },  { "stream", &stream },
    { "since", &since },     { "until", &until },        { "figures", &figures },
    { "top", &top },         { "after", &after_stream }, { "after_ns", &after_ns },
    { "table", &table },
  };

  TB_TRY(tc__read_kind(r->path, "/api/v1/history/", diag, &kind));
  TB_TRY(tc_http_query(r->query, params, sizeof params / sizeof params[0], diag));
  q->history.kind = text(kind);
  q->history.selector = &q->selector;
  q->selector.service = text(service);
  q->selector.instance = text(instance);
  TB_TRY(read_id("stream", stream, diag, q->stream, &q->selector.stream));
  TB_TRY(read_id("after", after_stream, diag, q->after_stream, &q->history.after_stream));
  TB_TRY(tc__read_time("since", since, diag, &q->selector.since_wall_ns));
  TB_TRY(tc__read_time("until", until, diag, &q->selector.until_wall_ns));
  TB_TRY(tp_query_number("figures", figures, 0, 1, diag, &q->figures_only));
  q->history.figures_only = q->figures_only != 0;
  q->history.table = text(table);
  if (top != NULL) TB_TRY(tp_query_number("top", top, 0, 1000000, diag, &q->rows));
  return tp_query_number("after_ns", after_ns, 0, INT64_MAX, diag, &q->history.after_ns);
}

/* The last line says where to go on. */
static void put_place(struct tb_buf *out, const Tracecollect__V1__HistoryReply *r) {
  char hex[STREAM_HEX + 1] = "";

  if (r->more && r->after_stream.len == TC_REPORT_STREAM_BYTES)
    tb_hex(r->after_stream.data, TC_REPORT_STREAM_BYTES, hex);
  tb_buf_printf(out, "{\"more\":%s", r->more ? "true" : "false");
  if (r->more) tb_buf_printf(out, ",\"after\":\"%s\",\"after_ns\":%" PRIu64, hex, r->after_ns);
  tb_buf_printf(out, ",\"damaged\":%" PRIu64 "}\n", r->damaged);
}

void tc__api_history(struct tc__http_job *job, struct tc_query_session *session) {
  struct history_query asked = { .history = TRACECOLLECT__V1__HISTORY_REQUEST__INIT,
                                 .selector = TRACECOLLECT__V1__SELECTOR__INIT,
                                 .rows = TP_REPORT_ROWS_SHOWN };
  Tracecollect__V1__HistoryReply *reply;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = read_history_query(&job->conn->head.request, &asked, &diag);
  if (rc == TB_OK) rc = tc_query_history(session, &asked.history, &diag, &reply);
  if (rc != TB_OK) {
    fail(job, rc, &diag);
    return;
  }
  for (size_t i = 0; i < reply->n_reports && tc__job_is_wanted(job); i++)
    tc__put_report(&job->answer.body, reply->reports[i], asked.rows);
  put_place(&job->answer.body, reply);
}

/* ---- what reports there are ---- */

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
  struct tb_arena arena;
  struct tb_mem mem;

  (void)session;
  if (!no_parameters(job)) return;
  tb_mem_init(&mem, tb_mem_libc, NULL, SCHEMA_BYTES_MAX);
  tb_arena_init(&arena, &mem, 16 << 10);
  tb_rc rc = write_schemas(&arena, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, "");
  tb_arena_fini(&arena);
}
