/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests for timelines. A worker draws one at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/http/private.h"
#include "proto/archive.pb-c.h"
#include "proto/query.h"
#include "proto/unpack.h"

enum { IDS_MAX = 200, REST_MS = 60000 };
_Static_assert((int)TP_STREAM_BYTES == (int)TC_TIMELINE_STREAM_BYTES, "one size of stream ids");

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
          "lanes: \"%.40s\" is not one of count, metric, range, log, sample, task, proc, thread, "
          "group, goroutine, region",
          word);
    *out |= 1u << kind;
  }
  return TB_OK;
}

static tb_rc read_ids(char *text, struct tb_diag *diag, int64_t ids[IDS_MAX], size_t *out_n) {
  char *rest = text;
  uint64_t id;

  for (const char *word; rest != NULL && (word = strsep(&rest, ",")) != NULL;) {
    if (*out_n == IDS_MAX)
      return tb_fail(diag, TB_PROTOCOL, "goroutines: more than %d at once", IDS_MAX);
    TB_TRY(tp_query_number("goroutines", word, 0, INT64_MAX, diag, &id));
    ids[(*out_n)++] = (int64_t)id;
  }
  return TB_OK;
}

static tb_rc check_times(uint64_t from, uint64_t to, struct tb_diag *diag) {
  if ((from == 0) != (to == 0))
    return tb_fail(diag, TB_PROTOCOL,
                   "from and to come together; without both: the newest generation");
  if (from != 0 && to <= from) return tb_fail(diag, TB_PROTOCOL, "to is not later than from");
  return TB_OK;
}

struct spans_query {
  struct tc_timeline_ask ask;
  int64_t ids[IDS_MAX];
};

static tb_rc read_spans(const Tracecollect__V1__SpansRequest *r, struct tb_diag *diag,
                        struct spans_query *q) {
  struct to_picture_ask *p = &q->ask.picture;
  char all[] = "count,metric,range,log,sample,task,proc,group";

  memcpy(q->ask.stream, r->stream.data, TP_STREAM_BYTES);
  TB_TRY(check_times(r->from_wall_ns, r->to_wall_ns, diag));
  q->ask.from_wall_ns = r->from_wall_ns;
  q->ask.until_wall_ns = r->to_wall_ns;
  TB_TRY(read_lanes(*r->lanes != '\0' ? r->lanes : all, diag, &p->kinds));
  p->px = r->px;
  p->limit = r->limit;
  p->after = r->after;
  if (*r->goroutines != '\0') TB_TRY(read_ids(r->goroutines, diag, q->ids, &p->n_ids));
  p->ids = q->ids;
  if (*r->entry != '\0') {
    const char *entry = strcmp(r->entry, "(unknown)") == 0 ? "" : r->entry;

    p->has_entry = true;
    p->entry = (struct to_string){ entry, strlen(entry) };
  }
  return TB_OK;
}

/* ---- answers ---- */

static tb_rc draw(struct tc__http_job *job, struct tc_query_session *session, const void *asked,
                  struct tb_diag *diag) {
  const Tracecollect__V1__SpansRequest *r = asked;
  struct spans_query q = { .ask = { .go_on = is_wanted, .self = job } };
  struct tc_timeline_answer answer;
  struct tb_mem mem;

  TB_TRY(read_spans(r, diag, &q));
  tb_mem_init(&mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tc_timeline_answer_init(&answer, &mem);
  tb_rc rc = tc_timeline_draw(job->http->timeline, session, &q.ask, diag, &answer);
  bool is_binary = strcmp(r->format, "binary") == 0;
  if (rc == TB_OK && is_binary) job->answer.type = "application/octet-stream";
  if (rc == TB_OK) (is_binary ? tc_timeline_binary : tc_timeline_json)(&answer, &job->answer.body);
  tc_timeline_answer_fini(&answer);
  return rc;
}

static tb_rc find_moment(struct tc__http_job *job, struct tc_query_session *session,
                         const void *asked, struct tb_diag *diag) {
  const Tracecollect__V1__SpanRequest *r = asked;
  const int64_t of[] = { [TO_MOMENT_OF_GOROUTINE] = r->goroutine,
                         [TO_MOMENT_OF_PROC] = r->proc,
                         [TO_MOMENT_OF_THREAD] = r->thread };
  struct tc_timeline_moment_ask ask = { .gen = r->gen, .go_on = is_wanted, .self = job };
  unsigned given = 0;

  memcpy(ask.stream, r->stream.data, TP_STREAM_BYTES);
  ask.moment.at = r->ns;
  for (unsigned k = 0; k < 3; k++) {
    if (of[k] < 0) continue;
    given++;
    ask.moment.of = (enum to_moment_of)k;
    ask.moment.id = of[k];
  }
  if (given != 1)
    return tb_fail(diag, TB_PROTOCOL, "one of goroutine, proc, thread says what is asked about");
  return tc_timeline_moment(job->http->timeline, session, &ask, diag, &job->answer.body);
}

static tb_rc find_state(struct tc__http_job *job, struct tc_query_session *session,
                        const void *asked, struct tb_diag *diag) {
  const Tracecollect__V1__StateRequest *r = asked;
  struct tc_timeline_state_ask ask = {
    .gen = r->gen, .at = r->ns, .go_on = is_wanted, .self = job
  };

  memcpy(ask.stream, r->stream.data, TP_STREAM_BYTES);
  return tc_timeline_state(job->http->timeline, session, &ask, diag, &job->answer.body);
}

/* ---- reports of a stretch ---- */

enum { ROWS_MAX = 1000, REPORT_BYTES = 64 << 10 };

struct stretch_query {
  struct tc_timeline_stretch_ask ask;
  struct tc__http_job *job;
  uint64_t rows;
  struct tb_arena arena; /* for one report at a time */
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

static tb_rc report_stretch(struct tc__http_job *job, struct tc_query_session *session,
                            const void *asked, struct tb_diag *diag) {
  const Tracecollect__V1__StretchRequest *r = asked;
  struct stretch_query q = { .job = job, .rows = r->top };
  const char *kind;
  struct tb_mem mem;

  TB_TRY(tc__read_kind(job->conn, diag, &kind));
  TB_TRY(check_times(r->from_wall_ns, r->to_wall_ns, diag));
  memcpy(q.ask.stream, r->stream.data, TP_STREAM_BYTES);
  q.ask.from_wall_ns = r->from_wall_ns;
  q.ask.until_wall_ns = r->to_wall_ns;
  q.ask.kind = *kind != '\0' ? kind : NULL;
  q.ask.rows_max = ROWS_MAX;
  q.ask.go_on = stretch_is_wanted;
  q.ask.take = take_report;
  q.ask.self = &q;
  tb_mem_init(&mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tb_arena_init(&q.arena, &mem, REPORT_BYTES);
  tb_rc rc = tc_timeline_stretch(job->http->timeline, session, &q.ask, &mem, diag);
  tb_arena_fini(&q.arena);
  return rc;
}

/* ---- why something took so long ---- */

enum { PATH_ROWS_MAX = 10000 };

/* Finds the stream and the time, of a service. */
static tb_rc find_slowest(struct tc_query_session *session, const Tracecollect__V1__WhyRequest *r,
                          struct tb_diag *diag, struct tc_timeline_why_ask *ask) {
  struct tc_query_slowest found;
  enum to_window window;

  if (*r->slow == '\0' || r->from_wall_ns != 0 || r->stream.len != 0)
    return tb_fail(diag, TB_PROTOCOL, "a service comes with slow, and without stream, from and to");
  if (!to_window_find(r->window, &window)) return TB_PROTOCOL; /* a word of params.def */
  TB_TRY(tc_query_slowest(session, r->service, r->instance, r->slow, window, diag, &found));
  memcpy(ask->stream, found.stream, TP_STREAM_BYTES);
  ask->from_wall_ns = found.from_wall_ns;
  ask->until_wall_ns = found.until_wall_ns;
  return TB_OK;
}

static tb_rc explain(struct tc__http_job *job, struct tc_query_session *session, const void *asked,
                     struct tb_diag *diag) {
  const Tracecollect__V1__WhyRequest *r = asked;
  struct tc_timeline_why_ask ask = { .from_wall_ns = r->from_wall_ns,
                                     .until_wall_ns = r->to_wall_ns,
                                     .rows_max = PATH_ROWS_MAX,
                                     .go_on = is_wanted,
                                     .self = job };
  struct to_why_ask *of = &ask.of;

  TB_TRY(check_times(r->from_wall_ns, r->to_wall_ns, diag));
  if (r->stream.len != 0) memcpy(ask.stream, r->stream.data, TP_STREAM_BYTES);
  if (r->stream.len == 0 && *r->service == '\0')
    return tb_fail(diag, TB_PROTOCOL, "stream or service is required");
  of->has_task = r->task >= 0;
  of->has_at = r->ns >= 0;
  if (*r->slow != '\0') of->slow = r->slow;
  if (of->has_task + (of->slow != NULL) + (r->goroutine >= 0) != 1 ||
      of->has_at != (r->goroutine >= 0))
    return tb_fail(diag, TB_PROTOCOL,
                   "one of task, slow, goroutine with ns says what is explained");
  if (of->has_task) of->task = (uint64_t)r->task;
  if (of->has_at) {
    of->goroutine = (uint64_t)r->goroutine;
    of->at = r->ns;
  }
  if (*r->service != '\0') TB_TRY(find_slowest(session, r, diag, &ask));
  return tc_timeline_why(job->http->timeline, session, &ask, diag, &job->answer.body);
}

/* ---- jobs ---- */

static void drawn(struct tc__http_job *job, bool wanted) {
  job->http->timeline_ms = uv_now(job->http->env.tls->uv);
  tc__job_answer(job, wanted);
}

static void answer(struct tc__http_job *job, struct tc_query_session *session) {
  static tb_rc (*const run[TP_ROUTES])(struct tc__http_job *, struct tc_query_session *,
                                       const void *asked, struct tb_diag *) = {
    [TP_ROUTE_SPANS] = draw,       [TP_ROUTE_SPAN] = find_moment,
    [TP_ROUTE_STATE] = find_state, [TP_ROUTE_STRETCH] = report_stretch,
    [TP_ROUTE_WHY] = explain,
  };
  struct tc__http_question q;
  struct tb_diag diag;

  if (!tc__job_is_wanted(job) || !tc__job_question(job, &q)) return;
  tb_diag_clear(&diag);
  tb_rc rc = run[job->conn->route->id](job, session, q.message, &diag);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
  tc__question_fini(&q);
}

void tc__timeline_begin(struct tc__http_conn *c) {
  const struct tc__http_job job = {
    .run = answer,
    .done = drawn,
    .answer.type = c->route->kind == TP_LINES ? "application/x-ndjson" : "application/json",
    .lane = TC__LANE_LONG,
  };

  if (!tc__job_begin(c->http, c, &job)) tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}

static void release_memory(struct tc__http_job *job, struct tc_query_session *session) {
  (void)session;
  tc_timeline_rest(job->http->timeline);
}

static void memory_released(struct tc__http_job *job, bool wanted) {
  (void)job;
  (void)wanted;
}

/* Releases the timeline's memory when nobody has used it for REST_MS. */
void tc__timeline_tick(struct tc_http *http) {
  const struct tc__http_job job = { .run = release_memory,
                                    .done = memory_released,
                                    .lane = TC__LANE_LONG };

  if (http->timeline_ms == 0 || http->lanes[TC__LANE_LONG].running > 0 ||
      uv_now(http->env.tls->uv) - http->timeline_ms < REST_MS)
    return;
  if (tc__job_begin(http, NULL, &job)) http->timeline_ms = 0;
}
