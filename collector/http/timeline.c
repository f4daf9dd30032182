/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: parameters in, pictures out. One is drawn at a time, on a worker. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/http/private.h"
#include "collector/http/query.h"
#include "pack/trim.h"
#include "proto/unpack.h"

enum { IDS_MAX = 200, PX_DEFAULT = 1000, LIMIT_DEFAULT = 100, REST_MS = 60000 };

static bool is_wanted(void *job) {
  return tc__job_is_wanted(job);
}

/* ---- parameters ---- */

static tb_rc read_lanes(char *text, struct tb_diag *diag, uint32_t *out) {
  char *rest = text;

  *out = 0;
  for (const char *word; (word = strsep(&rest, ",")) != NULL;) {
    unsigned kind = 0;

    while (kind < TO_LANE_KINDS && strcmp(word, to_lane_kind_name((enum to_lane_kind)kind)) != 0)
      kind++;
    if (kind == TO_LANE_KINDS)
      return tb_fail(
          diag, TB_PROTOCOL,
          "lanes: \"%.40s\" is none of count, metric, range, log, sample, task, proc, thread, "
          "group, goroutine, region",
          word);
    *out |= 1u << kind;
  }
  return TB_OK;
}

static tb_rc read_id(const char *name, const char *text, struct tb_diag *diag, int64_t *out) {
  uint64_t number;

  TB_TRY(tp_query_number(name, text, 0, INT64_MAX, diag, &number));
  *out = (int64_t)number;
  return TB_OK;
}

static tb_rc read_ids(char *text, struct tb_diag *diag, int64_t ids[IDS_MAX], size_t *out_n) {
  char *rest = text;

  for (const char *word; rest != NULL && (word = strsep(&rest, ",")) != NULL;) {
    if (*out_n == IDS_MAX)
      return tb_fail(diag, TB_PROTOCOL, "goroutines: more than %d at once", IDS_MAX);
    TB_TRY(read_id("goroutines", word, diag, &ids[(*out_n)++]));
  }
  return TB_OK;
}

static tb_rc read_times(const char *from, const char *to, struct tb_diag *diag, uint64_t *out_from,
                        uint64_t *out_to) {
  TB_TRY(tc__read_time("from", from, diag, out_from));
  TB_TRY(tc__read_time("to", to, diag, out_to));
  if ((from == NULL) != (to == NULL))
    return tb_fail(diag, TB_PROTOCOL,
                   "from and to come together; without both: the newest generation");
  if (from != NULL && *out_to <= *out_from)
    return tb_fail(diag, TB_PROTOCOL, "to is not later than from");
  return TB_OK;
}

struct spans_query {
  struct tc_timeline_ask ask;
  int64_t ids[IDS_MAX];
  bool is_binary;
};

static tb_rc read_spans_query(char *query, struct tb_diag *diag, struct spans_query *q) {
  static const char all[] = "count,metric,range,log,sample,task,proc,group";
  const char *stream = "", *from = NULL, *to = NULL, *px = NULL, *lanes = NULL, *ids = NULL;
  const char *entry = NULL, *after = NULL, *limit = NULL, *format = "json";
  const struct tc_http_param params[] = {
    { "stream", &stream }, { "from", &from },      { "to", &to },       { "px", &px },
    { "lanes", &lanes },   { "goroutines", &ids }, { "entry", &entry }, { "after", &after },
    { "limit", &limit },   { "format", &format },
  };
  struct to_picture_ask *p = &q->ask.picture;
  char words[sizeof all + 40];
  uint64_t number;

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tc__read_stream_id("stream", stream, diag, q->ask.stream));
  TB_TRY(read_times(from, to, diag, &q->ask.from_wall_ns, &q->ask.until_wall_ns));
  snprintf(words, sizeof words, "%s", lanes != NULL ? lanes : all);
  TB_TRY(read_lanes(words, diag, &p->kinds));
  p->px = PX_DEFAULT;
  p->limit = LIMIT_DEFAULT;
  p->after = -1;
  if (px != NULL) {
    TB_TRY(tp_query_number("px", px, 1, TO_PICTURE_PX_MAX, diag, &number));
    p->px = (unsigned)number;
  }
  if (limit != NULL) {
    TB_TRY(tp_query_number("limit", limit, 1, TO_PICTURE_GOROUTINES_MAX, diag, &number));
    p->limit = (size_t)number;
  }
  if (after != NULL) TB_TRY(read_id("after", after, diag, &p->after));
  if (ids != NULL) TB_TRY(read_ids((char *)(uintptr_t)ids, diag, q->ids, &p->n_ids));
  p->ids = q->ids;
  if (entry != NULL) {
    if (strcmp(entry, "(unknown)") == 0) entry = "";
    p->has_entry = true;
    p->entry = (struct to_string){ entry, strlen(entry) };
  }
  q->is_binary = strcmp(format, "binary") == 0;
  if (!q->is_binary && strcmp(format, "json") != 0)
    return tb_fail(diag, TB_PROTOCOL, "format=%.40s is none of json, binary", format);
  return TB_OK;
}

/* ---- answers ---- */

static void draw(struct tc__http_job *job, struct tc_query_session *session) {
  struct spans_query q = { .ask = { .go_on = is_wanted, .self = job } };
  struct tc_timeline_answer answer;
  struct tb_diag diag;
  struct tb_mem mem;

  if (!tc__job_is_wanted(job)) return; /* its reader left while it stood in line */
  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tc_timeline_answer_init(&answer, &mem);
  tb_rc rc = read_spans_query(job->conn->head.request.query, &diag, &q);
  if (rc == TB_OK) rc = tc_timeline_draw(job->http->timeline, session, &q.ask, &diag, &answer);
  if (rc != TB_OK) {
    tc__answer_fail_rc(&job->answer, rc, diag.text);
  } else if (q.is_binary) {
    job->answer.type = "application/octet-stream";
    tc_timeline_binary(&answer, &job->answer.body);
  } else {
    tc_timeline_json(&answer, &job->answer.body);
  }
  tc_timeline_answer_fini(&answer);
}

static tb_rc read_moment_query(char *query, struct tb_diag *diag,
                               struct tc_timeline_moment_ask *ask) {
  const char *stream = "", *gen = "", *ns = "", *of[] = { NULL, NULL, NULL };
  const struct tc_http_param params[] = {
    { "stream", &stream },
    { "gen", &gen },
    { "ns", &ns },
    { "goroutine", &of[TO_MOMENT_OF_GOROUTINE] },
    { "proc", &of[TO_MOMENT_OF_PROC] },
    { "thread", &of[TO_MOMENT_OF_THREAD] },
  };
  unsigned given = 0;

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tc__read_stream_id("stream", stream, diag, ask->stream));
  TB_TRY(tp_query_number("gen", gen, 1, INT64_MAX, diag, &ask->gen));
  TB_TRY(read_id("ns", ns, diag, &ask->moment.at));
  for (unsigned k = 0; k < 3; k++) {
    static const char *const names[] = { "goroutine", "proc", "thread" };

    if (of[k] == NULL) continue;
    given++;
    ask->moment.of = (enum to_moment_of)k;
    TB_TRY(read_id(names[k], of[k], diag, &ask->moment.id));
  }
  if (given != 1)
    return tb_fail(diag, TB_PROTOCOL, "one of goroutine, proc, thread says what is asked about");
  return TB_OK;
}

static void find_moment(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc_timeline_moment_ask ask = { .go_on = is_wanted, .self = job };
  struct tb_diag diag;

  if (!tc__job_is_wanted(job)) return;
  tb_diag_clear(&diag);
  tb_rc rc = read_moment_query(job->conn->head.request.query, &diag, &ask);
  if (rc == TB_OK)
    rc = tc_timeline_moment(job->http->timeline, session, &ask, &diag, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
}

static tb_rc read_state_query(char *query, struct tb_diag *diag,
                              struct tc_timeline_state_ask *ask) {
  const char *stream = "", *gen = "", *ns = "";
  const struct tc_http_param params[] = { { "stream", &stream }, { "gen", &gen }, { "ns", &ns } };

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tc__read_stream_id("stream", stream, diag, ask->stream));
  TB_TRY(tp_query_number("gen", gen, 1, INT64_MAX, diag, &ask->gen));
  return read_id("ns", ns, diag, &ask->at);
}

static void find_state(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc_timeline_state_ask ask = { .go_on = is_wanted, .self = job };
  struct tb_diag diag;

  if (!tc__job_is_wanted(job)) return;
  tb_diag_clear(&diag);
  tb_rc rc = read_state_query(job->conn->head.request.query, &diag, &ask);
  if (rc == TB_OK)
    rc = tc_timeline_state(job->http->timeline, session, &ask, &diag, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
}

/* ---- reports of a stretch ---- */

enum { ROWS_MAX = 1000, REPORT_BYTES = 64 << 10 };

struct stretch_query {
  struct tc_timeline_stretch_ask ask;
  struct tc__http_job *job;
  uint64_t rows;
  struct tb_arena arena; /* of one report */
};

static bool stretch_is_wanted(void *self) {
  return tc__job_is_wanted(((struct stretch_query *)self)->job);
}

static tb_rc take_report(void *self, const void *packed, size_t len) {
  struct stretch_query *q = self;
  ProtobufCAllocator allocator = tp_arena_allocator(&q->arena);

  Tracecollect__V1__StreamReport *report =
      tracecollect__v1__stream_report__unpack(&allocator, len, packed);
  if (report == NULL) return TB_NOMEM;
  tc__put_report(&q->job->answer.body, report, q->rows);
  tb_arena_reset(&q->arena);
  return q->job->answer.body.rc;
}

static tb_rc read_stretch_query(struct tc_http_request *r, struct tb_diag *diag,
                                struct stretch_query *q) {
  const char *stream = "", *from = NULL, *to = NULL, *top = NULL, *kind;
  const struct tc_http_param params[] = {
    { "stream", &stream }, { "from", &from }, { "to", &to }, { "top", &top }
  };

  TB_TRY(tc__read_kind(q->job->conn, diag, &kind));
  TB_TRY(tc_http_query(r->query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tc__read_stream_id("stream", stream, diag, q->ask.stream));
  TB_TRY(read_times(from, to, diag, &q->ask.from_wall_ns, &q->ask.until_wall_ns));
  if (top != NULL) TB_TRY(tp_query_number("top", top, 0, ROWS_MAX, diag, &q->rows));
  q->ask.kind = *kind != '\0' ? kind : NULL;
  return TB_OK;
}

static void report_stretch(struct tc__http_job *job, struct tc_query_session *session) {
  struct stretch_query q = { .job = job, .rows = TP_REPORT_ROWS_SHOWN };
  struct tb_diag diag;
  struct tb_mem mem;

  if (!tc__job_is_wanted(job)) return;
  q.ask.rows_max = ROWS_MAX;
  q.ask.go_on = stretch_is_wanted;
  q.ask.take = take_report;
  q.ask.self = &q;
  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tb_arena_init(&q.arena, &mem, REPORT_BYTES);
  tb_rc rc = read_stretch_query(&job->conn->head.request, &diag, &q);
  if (rc == TB_OK) rc = tc_timeline_stretch(job->http->timeline, session, &q.ask, &mem, &diag);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
  tb_arena_fini(&q.arena);
}

/* ---- why something took so long ---- */

enum { PATH_ROWS_MAX = 10000 };

static tb_rc read_why_query(char *query, struct tb_diag *diag, struct tc_timeline_why_ask *ask) {
  const char *stream = "", *from = NULL, *to = NULL, *task = NULL, *goroutine = NULL, *ns = NULL;
  struct to_why_ask *of = &ask->of;
  const struct tc_http_param params[] = {
    { "stream", &stream }, { "from", &from },           { "to", &to }, { "task", &task },
    { "slow", &of->slow }, { "goroutine", &goroutine }, { "ns", &ns },
  };

  TB_TRY(tc_http_query(query, params, sizeof params / sizeof params[0], diag));
  TB_TRY(tc__read_stream_id("stream", stream, diag, ask->stream));
  TB_TRY(read_times(from, to, diag, &ask->from_wall_ns, &ask->until_wall_ns));
  of->has_task = task != NULL;
  of->has_at = ns != NULL;
  if ((task != NULL) + (of->slow != NULL) + (goroutine != NULL) != 1 ||
      of->has_at != (goroutine != NULL))
    return tb_fail(diag, TB_PROTOCOL,
                   "one of task, slow, goroutine with ns says what is explained");
  if (task != NULL) TB_TRY(tp_query_number("task", task, 0, UINT64_MAX, diag, &of->task));
  if (goroutine == NULL) return TB_OK;
  TB_TRY(tp_query_number("goroutine", goroutine, 1, INT64_MAX, diag, &of->goroutine));
  return read_id("ns", ns, diag, &of->at);
}

static void explain(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc_timeline_why_ask ask = { .rows_max = PATH_ROWS_MAX, .go_on = is_wanted, .self = job };
  struct tb_diag diag;

  if (!tc__job_is_wanted(job)) return;
  tb_diag_clear(&diag);
  tb_rc rc = read_why_query(job->conn->head.request.query, &diag, &ask);
  if (rc == TB_OK)
    rc = tc_timeline_why(job->http->timeline, session, &ask, &diag, &job->answer.body);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
}

/* ---- jobs ---- */

static void drawn(struct tc__http_job *job, bool wanted) {
  job->http->timeline_ms = uv_now(job->http->env.tls->uv);
  tc__job_answer(job, wanted);
}

static void begin(struct tc__http_conn *c, const char *type,
                  void (*run)(struct tc__http_job *job, struct tc_query_session *session)) {
  const struct tc__http_job job = {
    .run = run, .done = drawn, .answer.type = type, .lane = TC__LANE_LONG
  };

  if (!tc__job_begin(c->http, c, &job)) tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}

void tc__timeline_begin(struct tc__http_conn *c) {
  begin(c, "application/json", draw);
}

void tc__moment_begin(struct tc__http_conn *c) {
  begin(c, "application/json", find_moment);
}

void tc__state_begin(struct tc__http_conn *c) {
  begin(c, "application/json", find_state);
}

void tc__why_begin(struct tc__http_conn *c) {
  begin(c, "application/json", explain);
}

void tc__stretch_begin(struct tc__http_conn *c) {
  begin(c, "application/x-ndjson", report_stretch);
}

static void rest(struct tc__http_job *job, struct tc_query_session *session) {
  (void)session;
  tc_timeline_rest(job->http->timeline);
}

static void rested(struct tc__http_job *job, bool wanted) {
  (void)job;
  (void)wanted;
}

/* Where no one has looked for a while, what stays in memory goes. */
void tc__timeline_tick(struct tc_http *http) {
  const struct tc__http_job job = { .run = rest, .done = rested, .lane = TC__LANE_LONG };

  if (http->timeline_ms == 0 || http->lanes[TC__LANE_LONG].running > 0 ||
      uv_now(http->env.tls->uv) - http->timeline_ms < REST_MS)
    return;
  if (tc__job_begin(http, NULL, &job)) http->timeline_ms = 0;
}
