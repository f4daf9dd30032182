/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/overview.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/http/metrics/report_view.h"
#include "config/times.h"
#include "proto/json.h"

enum { REPORTS_MEMORY_MAX = 256 << 20 };

typedef Tracecollect__V1__StreamStatus stream_status;

/* A table of one stream's report, with the stacks of its rows. */
struct stream_rows {
  unsigned char stream[TC_REPORT_STREAM_BYTES];
  const char *service, *instance;
  enum to_program program;
  uint64_t until_wall_ns;
  struct tp_table table;
};

/* This table of all streams, sorted by stream id. */
struct all_rows {
  struct tb_arena *arena;
  struct tc_report_view *view;
  const char *table;
  bool only_open; /* only streams that have not ended */
  struct stream_rows *rows;
  size_t n, room;
};

static tb_rc unpack_stacks(struct tc_report_view *view, const struct tp_table *table) {
  const Tracecollect__V1__TableSchema *schema = table->schema;

  for (size_t c = 0; c < schema->n_columns; c++)
    if (schema->columns[c]->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK)
      for (size_t i = 0; i < table->table->n_rows; i++)
        TB_TRY(tc_report_view_stack(view, tp_row_value(table->table->rows[i], c)));
  return TB_OK;
}

static tb_rc all_rows_add(void *self, const struct tc_report *packed) {
  struct all_rows *s = self;

  if (packed->ended_wall_ns != 0 && s->only_open) return TB_OK;
  TB_TRY(TB_ARENA_GROW(s->arena, s->rows, s->room, s->n));
  struct stream_rows *rows = &s->rows[s->n];
  memcpy(rows->stream, packed->stream, sizeof rows->stream);
  TB_TRY(tb_arena_copy(s->arena, packed->service, strlen(packed->service) + 1, &rows->service));
  TB_TRY(tb_arena_copy(s->arena, packed->instance, strlen(packed->instance) + 1, &rows->instance));
  TB_TRY(tc_report_view_open(s->view, packed));
  rows->until_wall_ns = s->view->until_wall_ns;
  rows->program = s->view->program;
  TB_TRY(tc_report_view_table(s->view, s->table, &rows->table));
  TB_TRY(unpack_stacks(s->view, &rows->table));
  s->n++;
  return TB_OK;
}

static int compare_streams(const void *a, const void *b) {
  return memcmp(a, b, TC_REPORT_STREAM_BYTES);
}
_Static_assert(offsetof(struct stream_rows, stream) == 0, "the id comes first");

static tb_rc all_rows_bind(struct all_rows *s, struct tc_reports *reports, const char *kind,
                           const char *window) {
  const struct tc_report_select select = { .kind = kind, .window = window };

  TB_TRY(tc_reports_collect(reports, &select, all_rows_add, s));
  if (s->n > 1) qsort(s->rows, s->n, sizeof *s->rows, compare_streams);
  return TB_OK;
}

static const struct stream_rows *all_rows_find(const struct all_rows *s,
                                               const ProtobufCBinaryData *id) {
  if (s->n == 0 || id->len != TC_REPORT_STREAM_BYTES) return NULL;
  return bsearch(id->data, s->rows, s->n, sizeof *s->rows, compare_streams);
}

static const Tracecollect__V1__Value *value_of(const struct stream_rows *rows,
                                               const Tracecollect__V1__Row *row, const char *name) {
  return tp_row_value(row, tp_table_column(&rows->table, name));
}

static int64_t number_of(const struct stream_rows *rows, const Tracecollect__V1__Row *row,
                         const char *name) {
  return tp_value_number(value_of(rows, row, name));
}

/* A Go program that uses signals has a goroutine that waits for them in what counts as a system call: it is always
 * blocked, which is of no interest. */
static bool is_idle(const struct stream_rows *rows, const Tracecollect__V1__Row *call) {
  const Tracecollect__V1__Value *stack = value_of(rows, call, "stack");

  for (size_t i = 0; i < tp_stack_length(rows->table.report, stack); i++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(rows->table.report, stack, i);
    if (frame != NULL && strcmp(frame->function, "os/signal.signal_recv") == 0) return true;
  }
  return false;
}

static uint64_t idle_calls(const struct stream_rows *rows) {
  const Tracecollect__V1__Table *calls = rows->table.table;
  uint64_t n = 0;

  for (size_t i = 0; i < calls->n_rows; i++) n += is_idle(rows, calls->rows[i]);
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

static void write_stop(struct tb_buf *out, const struct stream_rows *stops,
                       const Tracecollect__V1__Row *row,
                       const Tracecollect__V1__Distribution *stopped) {
  tb_buf_text(out, "{\"id\":");
  tp_json_text(out, tp_row_text(row, tp_table_column(&stops->table, "id")));
  write_text(out, "reason", tp_row_text(row, tp_table_column(&stops->table, "reason")));
  write_count(out, "count", stopped->count);
  write_count(out, "total_ns", stopped->total_ns);
  write_count(out, "max_ns", stopped->max_ns);
  write_name(out, "p99_ns");
  if (stopped->no_quantiles)
    tb_buf_text(out, "null}");
  else
    tb_buf_printf(out, "%" PRIu64 "}", stopped->p99_ns);
}

static void write_stops(struct tb_buf *out, const struct stream_rows *stops) {
  bool first = true;

  write_name(out, "stw");
  tb_buf_byte(out, '[');
  for (size_t i = 0; stops != NULL && i < stops->table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = stops->table.table->rows[i];
    const Tracecollect__V1__Distribution *stopped =
        tp_value_distribution(value_of(stops, row, "stopped"));

    if (stopped == NULL || row->other) continue;
    if (!first) tb_buf_byte(out, ',');
    first = false;
    write_stop(out, stops, row, stopped);
  }
  tb_buf_byte(out, ']');
}

static void write_stream(struct tb_buf *out, const stream_status *s,
                         const struct stream_rows *calls, const struct stream_rows *stops) {
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
  write_count(out, "blocked_now", calls != NULL ? calls->table.table->rows_total : 0);
  write_count(out, "blocked_idle", calls != NULL ? idle_calls(calls) : 0);
  write_stops(out, stops);
  tb_buf_byte(out, '}');
}

static void write_streams(struct tb_buf *out, const Tracecollect__V1__StatusReply *status,
                          const struct all_rows *calls, const struct all_rows *stops) {
  size_t shown = 0;

  write_name(out, "streams");
  tb_buf_byte(out, '[');
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < status->n_streams && shown < TC_OVERVIEW_STREAMS_MAX; i++) {
      /* In reverse order of the catalog, which has the newest stream last. */
      const stream_status *s = status->streams[status->n_streams - 1 - i];

      if ((strcmp(s->state, "live") == 0) != (pass == 0)) continue;
      if (shown++ > 0) tb_buf_byte(out, ',');
      write_stream(out, s, all_rows_find(calls, &s->stream), all_rows_find(stops, &s->stream));
    }
  tb_buf_byte(out, ']');
  write_count(out, "streams_total", status->n_streams);
}

/* --- blocked calls ----------------------------------------------------------------------------- */

struct blocked {
  const struct stream_rows *of;
  const Tracecollect__V1__Row *call;
  int64_t age_ns;
  bool idle;
};

static int busy_then_longest_first(const void *a, const void *b) {
  const struct blocked *x = a, *y = b;

  if (x->idle != y->idle) return x->idle ? 1 : -1;
  return x->age_ns < y->age_ns ? 1 : x->age_ns > y->age_ns ? -1 : 0;
}

static void write_stack(struct tb_buf *out, const struct blocked *b) {
  const Tracecollect__V1__Value *stack = value_of(b->of, b->call, "stack");
  const Tracecollect__V1__Report *report = b->of->table.report;

  write_name(out, "stack");
  tb_buf_byte(out, '[');
  for (size_t i = 0; i < tp_stack_length(report, stack) && i < TC_OVERVIEW_FRAMES_MAX; i++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(report, stack, i);
    if (frame == NULL) break;
    tb_buf_text(out, i > 0 ? ",{\"function\":" : "{\"function\":");
    tp_json_text(out, frame->function);
    write_text(out, "file", frame->file);
    write_count(out, "line", frame->line);
    tb_buf_byte(out, '}');
  }
  tb_buf_byte(out, ']');
}

static void write_flag(struct tb_buf *out, const char *name, bool flag) {
  write_name(out, name);
  tb_buf_text(out, flag ? "true" : "false");
}

static void write_call(struct tb_buf *out, const struct blocked *b) {
  char hex[2 * TC_STREAM_BYTES + 1];

  tb_buf_printf(out,
                "{\"stream\":\"%s\",\"service\":", tb_hex(b->of->stream, TC_STREAM_BYTES, hex));
  tp_json_text(out, b->of->service);
  write_text(out, "instance", b->of->instance);
  if (b->of->program == TO_PROGRAM_C) write_text(out, "program", "C");
  tb_buf_printf(out, ",\"goroutine\":%" PRId64 ",\"thread\":%" PRId64 ",\"age_ns\":%" PRId64,
                number_of(b->of, b->call, "goroutine"), number_of(b->of, b->call, "thread"),
                b->age_ns);
  write_count(out, "until_wall_ns", b->of->until_wall_ns);
  write_flag(out, "lost_proc", number_of(b->of, b->call, "lost_proc") != 0);
  write_flag(out, "idle", b->idle);
  write_flag(out, "lower_bound", number_of(b->of, b->call, "lower_bound") != 0);
  write_stack(out, b);
  tb_buf_byte(out, '}');
}

static size_t list_calls(const struct stream_rows *rows, struct blocked *out) {
  const Tracecollect__V1__Table *calls = rows->table.table;

  for (size_t i = 0; i < calls->n_rows; i++)
    out[i] = (struct blocked){ rows, calls->rows[i], number_of(rows, calls->rows[i], "age_ns"),
                               is_idle(rows, calls->rows[i]) };
  return calls->n_rows;
}

static tb_rc write_blocked(struct tb_buf *out, const struct all_rows *calls) {
  size_t total = 0, listed = 0, n = 0;
  struct blocked *all;

  for (size_t i = 0; i < calls->n; i++) {
    total += calls->rows[i].table.table->rows_total;
    listed += calls->rows[i].table.table->n_rows;
  }
  TB_TRY(tb_arena_alloc(calls->arena, (listed + 1) * sizeof *all, &all));
  for (size_t i = 0; i < calls->n; i++) n += list_calls(&calls->rows[i], &all[n]);
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

/* --- the overview ------------------------------------------------------------------------------ */

static tb_rc write_all(struct tb_buf *out, const Tracecollect__V1__StatusReply *status,
                       struct tc_reports *reports, struct tc_report_view *view) {
  struct all_rows calls = {
    .arena = view->arena, .view = view, .table = "blocked_now", .only_open = true
  };
  struct all_rows stops = { .arena = view->arena, .view = view, .table = "by_reason" };

  TB_TRY(all_rows_bind(&calls, reports, "syscall", "10s"));
  TB_TRY(all_rows_bind(&stops, reports, "stw", "all"));
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
  Tracecollect__V1__StatusReply *status;
  struct tc_report_view view;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_diag_clear(&diag);
  if (tc_query_status(session, &diag, &status) != TB_OK) return;
  tb_mem_init(&mem, tb_mem_libc, NULL, REPORTS_MEMORY_MAX);
  tb_arena_init(&arena, &mem, 256 << 10);
  tc_report_view_init(&view, &mem, &arena);
  if (write_all(out, status, reports, &view) != TB_OK) tb_buf_clear(out);
  tc_report_view_fini(&view);
  tb_arena_fini(&arena);
}
