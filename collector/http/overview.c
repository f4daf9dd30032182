/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/overview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "config/times.h"
#include "proto/json.h"
#include "proto/report_view.pb-c.h"
#include "proto/unpack.h"

enum { REPORTS_MEMORY_MAX = 256 << 20 };

typedef Tracecollect__V1__StreamStatus stream_status;
typedef Tracecollect__V1__ReportView stream_report;

/* Reports of one kind, unpacked, in order of their stream's id. */
struct sheaf {
  struct tb_arena *arena;
  stream_report **report;
  size_t n, room;
};

static tb_rc sheaf_add(void *self, const struct tc_report *packed) {
  struct sheaf *s = self;
  ProtobufCAllocator allocator = tp_arena_allocator(s->arena);

  if (packed->closed && strcmp(packed->kind, "syscall") == 0)
    return TB_OK; /* nothing is open there */
  if (s->n == s->room) {
    size_t room = s->room == 0 ? 64 : 2 * s->room;
    void *place;
    TB_TRY(tb_arena_take(s->arena, room * sizeof *s->report, &place));
    if (s->n > 0) memcpy(place, s->report, s->n * sizeof *s->report);
    s->report = place;
    s->room = room;
  }
  stream_report *r = tracecollect__v1__report_view__unpack(&allocator, packed->len, packed->bytes);
  if (r == NULL) return TB_BUDGET;
  s->report[s->n++] = r;
  return TB_OK;
}

static int by_id(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b) {
  if (a->len != b->len) return a->len < b->len ? -1 : 1;
  return memcmp(a->data, b->data, a->len);
}

static int compare_reports(const void *a, const void *b) {
  return by_id(&(*(stream_report *const *)a)->stream, &(*(stream_report *const *)b)->stream);
}

static tb_rc sheaf_bind(struct sheaf *s, struct tc_reports *reports, const char *kind,
                        const char *window) {
  const struct tc_report_select select = { .kind = kind, .window = window };

  TB_TRY(tc_reports_collect(reports, &select, sheaf_add, s));
  if (s->n > 1) qsort(s->report, s->n, sizeof *s->report, compare_reports);
  return TB_OK;
}

static const stream_report *sheaf_find(const struct sheaf *s, const ProtobufCBinaryData *id) {
  stream_report like = TRACECOLLECT__V1__REPORT_VIEW__INIT;
  stream_report *key = &like;

  if (s->n == 0) return NULL;
  like.stream = *id;
  stream_report *const *found = bsearch(&key, s->report, s->n, sizeof *s->report, compare_reports);
  return found != NULL ? *found : NULL;
}

/* Every Go program that asks for signals has one goroutine that waits for them all its life, in what
 * counts as a system call. It is blocked by definition and informs no reader. */
static bool is_idle(const Tracecollect__V1__BlockedCall *call) {
  for (size_t i = 0; i < call->n_stack; i++)
    if (strcmp(call->stack[i]->function, "os/signal.signal_recv") == 0) return true;
  return false;
}

static uint64_t idle_calls(const Tracecollect__V1__SyscallView *r) {
  uint64_t n = 0;

  for (size_t i = 0; i < r->n_blocked_now; i++) n += is_idle(r->blocked_now[i]);
  return n;
}

/* --- streams ----------------------------------------------------------------------------------- */

static void write_name(struct tb_buf *out, const char *name) {
  tb_buf_printf(out, ",\"%s\":", name);
}

static void write_text(struct tb_buf *out, const char *name, const char *text) {
  write_name(out, name);
  tp_json_text(out, text);
}

static void write_count(struct tb_buf *out, const char *name, uint64_t n) {
  tb_buf_printf(out, ",\"%s\":%" PRIu64, name, n);
}

static void write_stops(struct tb_buf *out, const Tracecollect__V1__StwView *stw) {
  write_name(out, "stw");
  tb_buf_byte(out, '[');
  for (size_t i = 0; stw != NULL && i < stw->n_reasons; i++) {
    const Tracecollect__V1__StwReason *reason = stw->reasons[i];

    if (reason->stopped == NULL) continue;
    if (out->data[out->len - 1] == '}') tb_buf_byte(out, ',');
    tb_buf_text(out, "{\"id\":");
    tp_json_text(out, reason->id);
    write_text(out, "reason", reason->reason);
    write_count(out, "count", reason->stopped->count);
    write_count(out, "total_ns", reason->stopped->total_ns);
    write_count(out, "max_ns", reason->stopped->max_ns);
    write_count(out, "p99_ns", reason->stopped->p99_ns);
    tb_buf_byte(out, '}');
  }
  tb_buf_byte(out, ']');
}

static void write_stream(struct tb_buf *out, const stream_status *s, const stream_report *calls,
                         const stream_report *stops) {
  char hex[2 * TC_STREAM_BYTES + 1] = "";

  if (s->stream.len == TC_STREAM_BYTES) tb_hex(s->stream.data, TC_STREAM_BYTES, hex);
  tb_buf_printf(out, "{\"stream\":\"%s\"", hex);
  write_text(out, "service", s->service);
  write_text(out, "instance", s->instance);
  write_text(out, "state", s->state);
  write_text(out, "peer", s->peer);
  write_count(out, "go_version", s->go_version);
  write_count(out, "bytes", s->bytes);
  write_count(out, "events", s->events);
  write_count(out, "generations", s->generations);
  write_count(out, "broken", s->broken);
  write_count(out, "lost_generations", s->lost_generations);
  write_count(out, "lost_bytes", s->lost_bytes);
  write_text(out, "last_loss", s->last_loss);
  write_count(out, "first_wall_ns", s->first_wall_ns);
  write_count(out, "last_wall_ns", s->last_wall_ns);
  write_count(out, "newest_wall_ns", s->newest_wall_ns);
  const Tracecollect__V1__SyscallView *r = calls != NULL ? calls->syscall : NULL;
  write_count(out, "blocked_now", r != NULL ? r->blocked_now_total : 0);
  write_count(out, "blocked_idle", r != NULL ? idle_calls(r) : 0);
  write_stops(out, stops != NULL ? stops->stw : NULL);
  tb_buf_byte(out, '}');
}

static void write_streams(struct tb_buf *out, const Tracecollect__V1__StatusReply *status,
                          const struct sheaf *calls, const struct sheaf *stops) {
  size_t shown = 0;

  write_name(out, "streams");
  tb_buf_byte(out, '[');
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < status->n_streams && shown < TC_OVERVIEW_STREAMS_MAX; i++) {
      /* Newest last in the catalog: what was opened last is looked for first. */
      const stream_status *s = status->streams[status->n_streams - 1 - i];

      if ((strcmp(s->state, "live") == 0) != (pass == 0)) continue;
      if (shown++ > 0) tb_buf_byte(out, ',');
      write_stream(out, s, sheaf_find(calls, &s->stream), sheaf_find(stops, &s->stream));
    }
  tb_buf_byte(out, ']');
  write_count(out, "streams_total", status->n_streams);
}

/* --- blocked calls ----------------------------------------------------------------------------- */

struct blocked {
  const stream_report *of;
  const Tracecollect__V1__BlockedCall *call;
  bool idle;
};

static int busy_then_longest_first(const void *a, const void *b) {
  const struct blocked *x = a, *y = b;

  if (x->idle != y->idle) return x->idle ? 1 : -1;
  return x->call->age_ns < y->call->age_ns ? 1 : x->call->age_ns > y->call->age_ns ? -1 : 0;
}

static void write_stack(struct tb_buf *out, const Tracecollect__V1__BlockedCall *call) {
  write_name(out, "stack");
  tb_buf_byte(out, '[');
  for (size_t i = 0; i < call->n_stack && i < TC_OVERVIEW_FRAMES_MAX; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    tb_buf_text(out, "{\"function\":");
    tp_json_text(out, call->stack[i]->function);
    write_text(out, "file", call->stack[i]->file);
    write_count(out, "line", call->stack[i]->line);
    tb_buf_byte(out, '}');
  }
  tb_buf_byte(out, ']');
}

static void write_call(struct tb_buf *out, const struct blocked *b) {
  tb_buf_text(out, "{\"service\":");
  tp_json_text(out, b->of->service);
  write_text(out, "instance", b->of->instance);
  tb_buf_printf(out, ",\"goroutine\":%" PRId64 ",\"thread\":%" PRId64, b->call->goroutine,
                b->call->thread);
  write_count(out, "age_ns", b->call->age_ns);
  write_count(out, "until_wall_ns", b->of->until_wall_ns);
  tb_buf_text(out, b->call->lost_proc ? ",\"lost_proc\":true" : ",\"lost_proc\":false");
  tb_buf_text(out, b->idle ? ",\"idle\":true" : ",\"idle\":false");
  tb_buf_text(out, b->call->lower_bound ? ",\"lower_bound\":true" : ",\"lower_bound\":false");
  write_stack(out, b->call);
  tb_buf_byte(out, '}');
}

static tb_rc write_blocked(struct tb_buf *out, const struct sheaf *calls) {
  size_t total = 0, listed = 0, n = 0;
  struct blocked *all;

  for (size_t i = 0; i < calls->n; i++)
    if (calls->report[i]->syscall != NULL) listed += calls->report[i]->syscall->n_blocked_now;
  TB_TRY(tb_arena_take(calls->arena, (listed + 1) * sizeof *all, &all));
  for (size_t i = 0; i < calls->n; i++) {
    const Tracecollect__V1__SyscallView *r = calls->report[i]->syscall;

    if (r == NULL) continue;
    total += r->blocked_now_total;
    for (size_t k = 0; k < r->n_blocked_now; k++)
      all[n++] =
          (struct blocked){ calls->report[i], r->blocked_now[k], is_idle(r->blocked_now[k]) };
  }
  qsort(all, n, sizeof *all, busy_then_longest_first);
  write_name(out, "blocked");
  tb_buf_byte(out, '[');
  for (size_t i = 0; i < n && i < TC_OVERVIEW_BLOCKED_MAX; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    write_call(out, &all[i]);
  }
  tb_buf_byte(out, ']');
  write_count(out, "blocked_total", total);
  return TB_OK;
}

/* --- all of it --------------------------------------------------------------------------------- */

static tb_rc write_all(struct tb_buf *out, const Tracecollect__V1__StatusReply *status,
                       struct tc_reports *reports, struct tb_arena *arena) {
  struct sheaf calls = { .arena = arena }, stops = { .arena = arena };

  TB_TRY(sheaf_bind(&calls, reports, "syscall", "10s"));
  TB_TRY(sheaf_bind(&stops, reports, "stw", "all"));
  tb_buf_printf(out, "{\"wall_ns\":%" PRIu64, tc_wall_ns());
  write_text(out, "version", status->version);
  write_text(out, "health", status->health);
  write_text(out, "level", status->level);
  write_count(out, "started_wall_ns", status->started_wall_ns);
  write_count(out, "archive_bytes", status->archive_bytes);
  write_count(out, "archive_segments", status->archive_segments);
  write_count(out, "disk_free_bytes", status->disk_free_bytes);
  write_streams(out, status, &calls, &stops);
  TB_TRY(write_blocked(out, &calls));
  tb_buf_byte(out, '}');
  return TB_OK;
}

void tc_overview_write(struct tc_query_session *session, struct tc_reports *reports,
                       struct tb_buf *out) {
  Tracecollect__V1__StatusRequest status = TRACECOLLECT__V1__STATUS_REQUEST__INIT;
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  struct tb_mem mem;
  struct tb_arena arena;

  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_STATUS;
  request.status = &status;
  const Tracecollect__V1__Reply *reply = tc_query_session_ask(session, &request);
  if (reply->rc != TB_OK) return;
  tb_mem_init(&mem, tb_mem_libc, NULL, REPORTS_MEMORY_MAX);
  tb_arena_init(&arena, &mem, 256 << 10);
  if (write_all(out, reply->status, reports, &arena) != TB_OK) tb_buf_clear(out);
  tb_arena_fini(&arena);
}
