/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of streams. Those of a whole service are also added up, as they are read: a service may have more streams than
 * one answer has room for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/query/private.h"
#include "config/times.h"
#include "pack/sum.h"
#include "proto/unpack.h"

enum {
  PART_BYTES = 8 << 20,
  SUM_WAIT_MS = 4000
}; /* thousands of reports take some seconds; a collector ends within 5 s */

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__ReportRequest ReportRequest;

enum { PAST_NAMED = 5, PAST_BYTES = 600 };

/* The sum of a kind: of the live streams, or of the ended ones if none is live, as numbers of now are only those of
 * streams that run at once. */
struct kind_sum {
  struct tp_sum sum;
  bool has_live;
  unsigned past, past_live; /* streams whose figures are of the past: they are not in it */
  char names[PAST_BYTES];   /* of some of them */
};

struct collecting {
  struct tc_query_session *s;
  uint64_t live; /* streams that have not ended */
  bool sums, only_sums;
  size_t part_bytes;                       /* a sum of each kind has room for so much more */
  struct kind_sum kind[TO_ANALYSIS_KINDS]; /* zeroed: none yet */
  StreamReport **reports;
  size_t n, room;
};

static tb_rc put(struct collecting *c, StreamReport *report) {
  TB_TRY(TB_ARENA_GROW(&c->s->arena, c->reports, c->room, c->n));
  c->reports[c->n++] = report;
  return TB_OK;
}

static tb_rc add_to_list(struct collecting *c, const struct tc_report *report) {
  ProtobufCAllocator allocator = tp_arena_allocator(&c->s->arena);
  StreamReport *message =
      tracecollect__v1__stream_report__unpack(&allocator, report->len, report->bytes);

  if (message == NULL) return c->s->arena.is_short ? TB_NOMEM : TB_BUDGET;
  message->ended_wall_ns = report->ended_wall_ns;
  return put(c, message);
}

struct finding {
  const unsigned char *stream;
  bool is_connected;
};

static tb_rc take_state(void *self, const struct tc_stream_row *row) {
  struct finding *f = self;

  if (memcmp(row->stream, f->stream, sizeof row->stream) == 0)
    f->is_connected = strcmp(row->state, "live") == 0;
  return TB_OK;
}

bool tc__query_is_of_now(struct tc_query_session *s, const struct tc_report *report) {
  const struct tc_select select = { .stream = report->stream, .limit = 1 };
  struct finding f = { .stream = report->stream };
  struct tb_diag ignored;

  if (!tc_report_is_past(report)) return true;
  if (report->ended_wall_ns != 0) return false;
  tb_diag_clear(&ignored);
  tb_rc rc = tc__query_catalog(s, &ignored);
  if (rc == TB_OK) rc = tc_catalog_streams(s->catalog, &select, take_state, &f, &ignored);
  return rc != TB_OK || f.is_connected;
}

static void name_past(struct kind_sum *of, const struct tc_report *report) {
  size_t n = strlen(of->names);
  char since[TC_TIME_BYTES];

  of->past_live += report->ended_wall_ns == 0;
  if (of->past++ >= PAST_NAMED) return;
  tc_time_format(report->until_wall_ns, since);
  snprintf(of->names + n, sizeof of->names - n, "%s%.64s (nothing since %s)", n > 0 ? ", " : "",
           report->instance, since);
}

static tb_rc add_to_sum(struct collecting *c, const struct tc_report *report) {
  bool is_live = report->ended_wall_ns == 0;
  enum to_analysis_kind kind;
  StreamReport *part;

  if (!to_analysis_find(report->kind, &kind)) return TB_OK;
  struct kind_sum *of = &c->kind[kind];
  if (of->sum.merge == NULL) tp_sum_init(&of->sum, &c->s->mem, tp_merge, c->part_bytes);
  if (!tc__query_is_of_now(c->s, report)) {
    name_past(of, report);
    return TB_OK;
  }
  if (of->has_live && !is_live) return TB_OK;
  if (is_live && !of->has_live) tp_sum_clear(&of->sum);
  of->has_live = is_live;
  TB_TRY(tp_sum_add(&of->sum, report->bytes, report->len, &part));
  part->ended_wall_ns = report->ended_wall_ns;
  return TB_OK;
}

static tb_rc take_report(void *self, const struct tc_report *report) {
  struct collecting *c = self;

  if (tc__query_is_stopping(c->s->query)) return TB_IO;
  if (c->sums) TB_TRY(add_to_sum(c, report));
  return c->only_sums ? TB_OK : add_to_list(c, report);
}

static tb_rc add_note(struct collecting *c, const char *note, StreamReport *sum) {
  Tracecollect__V1__Report *report = sum->report;
  char **notes;

  TB_TRY(tb_arena_alloc(&c->s->arena, (report->n_notes + 1) * sizeof *notes, &notes));
  if (report->n_notes > 0) memcpy(notes, report->notes, report->n_notes * sizeof *notes);
  report->notes = notes;
  return tc__query_text(&c->s->arena, note, &notes[report->n_notes++]);
}

/* A report can be missing if memory or time was short. */
static tb_rc note_missing(struct collecting *c, uint64_t missing, StreamReport *sum) {
  char note[100];

  snprintf(note, sizeof note, "%" PRIu64 " of %" PRIu64 " streams are not in it: ask again.",
           missing, c->live);
  return add_note(c, note, sum);
}

static tb_rc note_past(struct collecting *c, const struct kind_sum *of, StreamReport *sum) {
  char note[PAST_BYTES + 100], more[32] = "";

  if (of->past > PAST_NAMED) snprintf(more, sizeof more, " and %u more", of->past - PAST_NAMED);
  snprintf(note, sizeof note, "%u stream%s not in it: %s%s.", of->past,
           of->past == 1 ? " is" : "s are", of->names, more);
  return add_note(c, note, sum);
}

/* A single report has no sum, but is its own if only the sum was asked for. */
static tb_rc take_sums(struct collecting *c) {
  StreamReport *sum;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    const struct kind_sum *kind = &c->kind[k];
    struct tp_sum *of = &c->kind[k].sum;
    uint64_t known = of->parts + kind->past_live;
    if (of->parts == 0 || (of->parts == 1 && !c->only_sums)) continue;
    TB_TRY(tp_sum_take(of, &c->s->arena, &sum));
    tp_sum_fini(of); /* its memory is needed for the next one */
    *of = (struct tp_sum){ 0 };
    TB_TRY(put(c, sum));
    if (kind->past > 0 && sum->report != NULL) TB_TRY(note_past(c, kind, sum));
    if (kind->has_live && known < c->live) TB_TRY(note_missing(c, c->live - known, sum));
  }
  return TB_OK;
}

/* Sums come first, then live streams, in the order of their begin. */
static void put_in_order(struct collecting *c, size_t reports, StreamReport **out) {
  size_t n = c->n - reports;

  if (n > 0) memcpy(out, c->reports + reports, n * sizeof *out);
  for (int ended = 0; ended < 2; ended++)
    for (size_t i = 0; i < reports; i++)
      if ((c->reports[i]->ended_wall_ns != 0) == ended) out[n++] = c->reports[i];
}

static tb_rc collect(struct collecting *c, const struct tc_report_select *select,
                     Tracecollect__V1__ReportReply *reply) {
  c->live = tc_reports_live(c->s->query->env.reports, select);
  TB_TRY(tc_reports_collect(c->s->query->env.reports, select, take_report, c));
  size_t reports = c->n;
  TB_TRY(take_sums(c));
  TB_TRY(tb_arena_alloc(&c->s->arena, (c->n + 1) * sizeof *reply->reports, &reply->reports));
  put_in_order(c, reports, reply->reports);
  reply->n_reports = c->n;
  return TB_OK;
}

tb_rc tc__query_sums(struct tc_query_session *s, const struct tc_report_select *select,
                     Tracecollect__V1__ReportReply *out) {
  struct collecting c = {
    .s = s, .sums = true, .only_sums = true, .part_bytes = PART_BYTES / TO_ANALYSIS_KINDS
  };

  tb_rc rc = collect(&c, select, out);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) tp_sum_fini(&c.kind[k].sum);
  return rc;
}

static bool is_of_service(const ReportRequest *ask) {
  return *ask->service != '\0' && ask->stream.len == 0;
}

static tb_rc read_ask(const ReportRequest *ask, struct tb_diag *diag, struct collecting *c,
                      struct tc_report_select *out) {
  bool is_only = strcmp(ask->sum, "only") == 0;

  if (ask->stream.len != 0 && ask->stream.len != TC_REPORT_STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  if (is_only && !is_of_service(ask))
    return tb_fail(diag, TB_PROTOCOL, "sum=only needs a service, and no stream");
  c->sums = is_of_service(ask) && *ask->window != '\0' && strcmp(ask->sum, "none") != 0;
  c->only_sums = is_only;
  c->part_bytes = *ask->kind != '\0' ? PART_BYTES : PART_BYTES / TO_ANALYSIS_KINDS;
  *out = (struct tc_report_select){
    .stream = ask->stream.len != 0 ? ask->stream.data : NULL,
    .service = *ask->service != '\0' ? ask->service : NULL,
    .instance = *ask->instance != '\0' ? ask->instance : NULL,
    .kind = *ask->kind != '\0' ? ask->kind : NULL,
    .window = *ask->window != '\0' ? ask->window : NULL,
    .wait_ms = c->sums ? SUM_WAIT_MS : 0,
  };
  return TB_OK;
}

static tb_rc answer_report(struct tc_query_session *s, const ReportRequest *ask,
                           struct tb_diag *diag, Tracecollect__V1__ReportReply **out) {
  struct collecting c = { .s = s };
  struct tc_report_select select;

  TB_TRY(read_ask(ask, diag, &c, &select));
  TB_TRY(tb_arena_alloc(&s->arena, sizeof **out, out));
  tracecollect__v1__report_reply__init(*out);
  tb_rc rc = collect(&c, &select, *out);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) tp_sum_fini(&c.kind[k].sum);
  if (rc == TB_BUDGET && c.sums && !c.only_sums)
    return tb_fail(diag, rc,
                   "the reports of all its streams are too large for one answer: ask for their sum "
                   "only (sum=only), or for one instance");
  return rc;
}

TC__QUESTION(report, Report)
