/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/top/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/report_read.h"
#include "tools/tracectl/report/frame_text.h"

typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__StreamStatus stream_status;

#define OLD_NS UINT64_C(15000000000) /* as in collector/http/page/model.js */

static void name_who(char out[TK_TOP_WHO_BYTES], const char *service, const char *instance) {
  snprintf(out, TK_TOP_WHO_BYTES, "%.64s/%.64s", service, instance);
}

/* ---- streams ---- */

static struct tk_top_stream *find_stream(struct tk_top_model *m, const unsigned char id[16]) {
  for (size_t i = 0; i < m->streams; i++)
    if (memcmp(m->stream[i].id, id, 16) == 0) return &m->stream[i];
  return NULL;
}

static struct tk_top_stream *find_or_add(struct tk_top_model *m, const unsigned char id[16]) {
  struct tk_top_stream *stream = find_stream(m, id);

  if (stream != NULL || m->streams == TK_TOP_STREAMS) return stream;
  stream = &m->stream[m->streams++];
  *stream = (struct tk_top_stream){ 0 };
  memcpy(stream->id, id, 16);
  return stream;
}

/* A count that decreased belongs to another collector, or a rebuilt catalog: begin anew. */
static void take_sample(struct tk_top_stream *s, uint64_t now_ns, uint64_t bytes, uint64_t events) {
  unsigned last = s->samples;

  if (last > 0 && (bytes < s->sample[last - 1].bytes || events < s->sample[last - 1].events))
    last = s->samples = 0;
  if (last == TK_TOP_SAMPLES) {
    memmove(s->sample, s->sample + 1, sizeof s->sample - sizeof s->sample[0]);
    last--;
  }
  s->sample[last].at_ns = now_ns;
  s->sample[last].bytes = bytes;
  s->sample[last].events = events;
  s->samples = last + 1;

  double seconds = (double)(now_ns - s->sample[0].at_ns) / 1e9;
  s->rates = (struct tk_top_rates){ 0 };
  if (seconds <= 0) return;
  s->rates.bytes_s = (double)(bytes - s->sample[0].bytes) / seconds;
  s->rates.events_s = (double)(events - s->sample[0].events) / seconds;
}

/* Compares times of the collector's clock only. last_wall_ns 0: a new stream, nothing is archived yet. */
static bool is_old(const stream_status *s, uint64_t wall_ns) {
  return s->last_wall_ns != 0 && wall_ns > s->last_wall_ns && wall_ns - s->last_wall_ns > OLD_NS;
}

static void take_stream(struct tk_top_model *m, const stream_status *from, uint64_t now_ns,
                        uint64_t wall_ns) {
  struct tk_top_stream *s = find_or_add(m, from->stream.data);

  m->lost_generations += from->lost_generations;
  if (s == NULL) {
    m->streams_more++;
    return;
  }
  s->seen = true;
  s->old = is_old(from, wall_ns);
  name_who(s->who, from->service, from->instance);
  snprintf(s->state, sizeof s->state, "%s", from->state);
  s->go_version = from->go_version;
  s->generations = from->generations;
  s->broken = from->broken;
  s->lost_generations = from->lost_generations;
  s->spool_bytes = from->spool_bytes;
  if (from->lost_generations > 0 && *from->last_loss != 0 && *m->last_loss == 0)
    snprintf(m->last_loss, sizeof m->last_loss, "%s: %s", s->who, from->last_loss);
  take_sample(s, now_ns, from->bytes, from->events);
  m->rates.bytes_s += s->rates.bytes_s;
  m->rates.events_s += s->rates.events_s;
}

static int rank_of(const char *state) {
  static const char *const states[] = { "live", "waiting", "unclean", "closed" };

  if (strcmp(state, "exec") == 0) state = "closed";
  for (int i = 0; i < 4; i++)
    if (strcmp(state, states[i]) == 0) return i;
  return 4;
}

static int by_state_and_name(const void *a, const void *b) {
  const struct tk_top_stream *x = a, *y = b;
  int order = rank_of(x->state) - rank_of(y->state);

  if (order == 0) order = strcmp(x->who, y->who);
  return order != 0 ? order : memcmp(x->id, y->id, sizeof x->id);
}

static void forget_unseen(struct tk_top_model *m) {
  size_t n = 0;

  for (size_t i = 0; i < m->streams; i++)
    if (m->stream[i].seen) m->stream[n++] = m->stream[i];
  m->streams = n;
}

bool tk_top_wants(const struct tk_selector *selector, const stream_status *s) {
  return s->stream.len == 16 &&
         (selector->service == NULL || strcmp(s->service, selector->service) == 0) &&
         (selector->instance == NULL || strcmp(s->instance, selector->instance) == 0) &&
         (!selector->has_stream || memcmp(s->stream.data, selector->stream, 16) == 0);
}

void tk_top_take_status(struct tk_top_model *m, const Tracecollect__V1__StatusReply *status,
                        const struct tk_selector *selector, uint64_t now_ns) {
  unsigned *const counts[] = { &m->live, &m->waiting, &m->unclean, &m->closed };

  snprintf(m->version, sizeof m->version, "%s", status->version);
  snprintf(m->health, sizeof m->health, "%s", status->health);
  m->archive_bytes = status->archive_bytes;
  m->archive_segments = status->archive_segments;
  m->disk_free_bytes = status->disk_free_bytes;
  for (size_t i = 0; i < 4; i++) *counts[i] = 0;
  m->rates = (struct tk_top_rates){ 0 };
  m->lost_generations = m->streams_more = 0;
  m->last_loss[0] = 0;
  for (size_t i = 0; i < m->streams; i++) m->stream[i].seen = false;

  for (size_t i = 0; i < status->n_streams; i++) {
    const stream_status *s = status->streams[i];
    if (!tk_top_wants(selector, s)) continue;
    int rank = rank_of(s->state);
    if (rank < 4) (*counts[rank])++;
    take_stream(m, s, now_ns, status->wall_ns);
  }
  forget_unseen(m);
  qsort(m->stream, m->streams, sizeof m->stream[0], by_state_and_name);
}

/* ---- reports ---- */

void tk_top_clear_reports(struct tk_top_model *m) {
  m->calls = m->stops = 0;
  m->calls_total = 0;
  for (size_t i = 0; i < m->streams; i++) {
    struct tk_top_stream *s = &m->stream[i];
    s->blocked_now = s->call_p99_ns = s->stw_max_ns = 0;
    s->stw_share = 0;
  }
}

/* Sorts calls that block now first, then older calls first. */
static bool stands_before(const struct tk_top_call *call, uint64_t age_ns, bool old) {
  bool is_old = call->as_of_wall_ns != 0;

  return is_old == old ? call->age_ns >= age_ns : old;
}

/* Keeps as many calls of all streams as there is room for. */
static void take_call(struct tk_top_model *m, const char *who, uint64_t as_of_wall_ns,
                      const Tracecollect__V1__StreamReport *report, const struct tp_table *table,
                      const Row *from) {
  uint64_t age_ns = (uint64_t)tp_row_number(from, tp_table_column(table, "age_ns"));
  size_t at = m->calls;

  while (at > 0 && !stands_before(&m->call[at - 1], age_ns, as_of_wall_ns != 0)) at--;
  if (at == TK_TOP_CALLS) return;
  if (m->calls < TK_TOP_CALLS) m->calls++;
  memmove(&m->call[at + 1], &m->call[at], (m->calls - at - 1) * sizeof m->call[0]);

  const Tracecollect__V1__Frame *own =
      tk_frame_own_of(table->report, tp_row_value(from, tp_table_column(table, "stack")));
  struct tk_top_call *call = &m->call[at];
  *call = (struct tk_top_call){
    .age_ns = age_ns,
    .as_of_wall_ns = as_of_wall_ns,
    .goroutine = tp_row_number(from, tp_table_column(table, "goroutine")),
    .lower_bound = tp_row_number(from, tp_table_column(table, "lower_bound")) != 0,
    .is_c = tp_report_program(report) == TO_PROGRAM_C,
  };
  snprintf(call->who, sizeof call->who, "%s", who);
  if (own != NULL)
    tk_frame_text(own, call->where, sizeof call->where);
  else
    snprintf(call->where, sizeof call->where, "(stack unknown)");
}

static void take_calls(struct tk_top_model *m, struct tk_top_stream *s,
                       const Tracecollect__V1__StreamReport *report) {
  uint64_t as_of_wall_ns = s->old ? report->until_wall_ns : 0;
  const Distribution *calls = tp_value_distribution(tp_report_figure(report->report, "calls"));
  struct tp_table now;

  if (rank_of(s->state) == rank_of("closed")) return;
  (void)tp_report_table(report->report, "blocked_now", &now);
  if (!s->old) s->blocked_now = now.table->rows_total;
  if (calls != NULL) s->call_p99_ns = calls->p99_ns;
  m->calls_total += s->blocked_now;
  for (size_t i = 0; i < now.table->n_rows; i++)
    take_call(m, s->who, as_of_wall_ns, report, &now, now.table->rows[i]);
}

static void take_stop(struct tk_top_model *m, const struct tk_top_stream *s, const char *id,
                      uint64_t open, const Distribution *stopped) {
  struct tk_top_stop *stop = NULL;

  for (size_t i = 0; i < m->stops && stop == NULL; i++)
    if (strcmp(m->stop[i].id, id) == 0) stop = &m->stop[i];
  if (stop == NULL) {
    if (m->stops == TK_TOP_STOPS) return;
    stop = &m->stop[m->stops++];
    *stop = (struct tk_top_stop){ 0 };
    snprintf(stop->id, sizeof stop->id, "%s", id);
  }
  if (!s->old) stop->open += open;
  if (stopped == NULL) return;
  stop->count += stopped->count;
  stop->total_ns += stopped->total_ns;
  if (stopped->p99_ns > stop->p99_ns) stop->p99_ns = stopped->p99_ns;
  if (stopped->max_ns <= stop->max_ns) return;
  stop->max_ns = stopped->max_ns;
  snprintf(stop->worst, sizeof stop->worst, "%s", s->who);
}

static int by_total(const void *a, const void *b) {
  const struct tk_top_stop *x = a, *y = b;

  if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
  return strcmp(x->id, y->id);
}

static void take_stops(struct tk_top_model *m, struct tk_top_stream *s,
                       const Tracecollect__V1__Report *r) {
  const Distribution *stopped = tp_value_distribution(tp_report_figure(r, "stopped"));
  struct tp_table reasons;

  if (rank_of(s->state) == rank_of("closed")) return;
  s->stw_share = tp_value_share(tp_report_figure(r, "wall_share"));
  if (stopped != NULL) s->stw_max_ns = stopped->max_ns;
  (void)tp_report_table(r, "by_reason", &reasons);
  for (size_t i = 0; i < reasons.table->n_rows; i++) {
    const Row *row = reasons.table->rows[i];
    if (row->other) continue;
    take_stop(m, s, tp_row_text(row, tp_table_column(&reasons, "id")),
              (uint64_t)tp_row_number(row, tp_table_column(&reasons, "open")),
              tp_row_distribution(row, tp_table_column(&reasons, "stopped")));
  }
  qsort(m->stop, m->stops, sizeof m->stop[0], by_total);
}

void tk_top_take_report(struct tk_top_model *m, const Tracecollect__V1__StreamReport *report) {
  struct tk_top_stream *s = report->stream.len == 16 ? find_stream(m, report->stream.data) : NULL;

  if (s == NULL) return;
  if (strcmp(report->kind, "syscall") == 0) take_calls(m, s, report);
  if (strcmp(report->kind, "stw") == 0) take_stops(m, s, report->report);
}

void tk_top_show_report(struct tk_top_model *m, const char *kind, char *text) {
  free(m->report);
  m->report_kind = kind;
  m->report = text;
  m->report_lines = 0;
  for (; text != NULL && *text != '\0'; text++) m->report_lines += *text == '\n';
}

/* ---- alerts ---- */

void tk_top_take_alert(struct tk_top_model *m, uint64_t wall_ns, const char *text) {
  struct tk_top_alert *alert = &m->alert[0];

  if (m->alerts < TK_TOP_ALERTS) m->alerts++;
  memmove(alert + 1, alert, (m->alerts - 1) * sizeof *alert);
  m->alerts_total++;
  *alert = (struct tk_top_alert){ .wall_ns = wall_ns };
  snprintf(alert->text, sizeof alert->text, "%s", text);
}
