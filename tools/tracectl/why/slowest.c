/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/slowest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "config/times.h"
#include "online/window/window.h"
#include "pack/report_read.h"
#include "tools/tracectl/remote/names.h"
#include "tools/tracectl/report/live.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/tracectl.h"

enum { LIST_BYTES = 120, TYPES_SHOWN = 5, DIGITS = 8 };

typedef Tracecollect__V1__StreamReport stream_report;

struct search {
  const struct tk_report_set *set; /* of tasks and regions */
  const char *type;
  uint64_t begin_wall_ns; /* of the window, counted from the newest end; 0: none */
  const Tracecollect__V1__StatusReply *status; /* NULL: not needed, or the collector does not say */
  const stream_report *best, *slower; /* slower: an ended one, if best is live; NULL: none */
  uint64_t best_ns, slower_ns;
};

static bool is_live(const stream_report *report) {
  return report->ended_wall_ns == 0;
}

static bool is_new(const struct search *s, const stream_report *report) {
  return report->until_wall_ns == 0 || report->until_wall_ns >= s->begin_wall_ns;
}

/* A connected stream is only quiet; a program that was killed leaves one that waits for it. */
static bool is_connected(const struct search *s, const stream_report *report) {
  for (size_t i = 0; s->status != NULL && i < s->status->n_streams; i++) {
    const ProtobufCBinaryData *id = &s->status->streams[i]->stream;
    if (id->len == report->stream.len && memcmp(id->data, report->stream.data, id->len) == 0)
      return strcmp(s->status->streams[i]->state, "live") == 0;
  }
  return s->status == NULL;
}

static bool is_in_window(const struct search *s, const stream_report *report) {
  return is_new(s, report) || (is_live(report) && is_connected(s, report));
}

static void look(struct search *s, const stream_report *report, bool live) {
  const Tracecollect__V1__Distribution *latency = tp_report_type_latency(report->report, s->type);

  if (latency == NULL || latency->count == 0 || is_live(report) != live || !is_in_window(s, report))
    return;
  if (s->best == NULL || (is_live(s->best) == live && latency->max_ns > s->best_ns)) {
    s->best = report;
    s->best_ns = latency->max_ns;
  } else if (is_live(s->best) && !live && latency->max_ns > s->best_ns &&
             latency->max_ns > s->slower_ns) {
    s->slower = report;
    s->slower_ns = latency->max_ns;
  }
}

static void ask_states(struct tk_client *client, struct search *s) {
  Tracecollect__V1__StatusReply *status;
  struct tb_diag ignored;
  bool is_needed = false;

  for (size_t i = 0; i < s->set->n; i++)
    is_needed |= is_live(s->set->report[i]) && !is_new(s, s->set->report[i]);
  tb_diag_clear(&ignored);
  if (is_needed && tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, &ignored, &status) == TB_OK)
    s->status = status;
}

static void find(struct tk_client *client, struct search *s, uint64_t window_ns) {
  const struct tk_report_set *set = s->set;
  uint64_t newest = 0;

  for (size_t i = 0; i < set->n; i++)
    if (set->report[i]->until_wall_ns > newest) newest = set->report[i]->until_wall_ns;
  s->begin_wall_ns = window_ns != 0 && newest > window_ns ? newest - window_ns : 0;
  ask_states(client, s);
  for (size_t i = 0; i < set->n; i++) look(s, set->report[i], true);
  for (size_t i = 0; i < set->n; i++) look(s, set->report[i], false);
}

/* Lists types of tasks and regions: "; there are a, b, c". */
static void list_types(const struct tk_report_set *set, const char *type, char out[LIST_BYTES]) {
  struct tb_nearest nearest = { .word = type };
  size_t n = 0, shown = 0;

  out[0] = '\0';
  for (size_t i = 0; i < set->n; i++) {
    struct tp_table table;
    if (!tp_report_table(set->report[i]->report, "by_type", &table)) continue;
    size_t column = tp_table_column(&table, "type");
    for (size_t r = 0; r < table.table->n_rows; r++) {
      const char *name = tp_row_text(table.table->rows[r], column);
      if (table.table->rows[r]->other || name[0] == '\0') continue;
      tb_nearest_try(&nearest, name);
      if (shown == TYPES_SHOWN || n >= LIST_BYTES || strstr(out, name) != NULL) continue;
      n += (size_t)snprintf(out + n, LIST_BYTES - n, "%s%s", shown++ > 0 ? ", " : "; there are ",
                            name);
    }
  }
  if (nearest.best != NULL) snprintf(out, LIST_BYTES, "; did you mean %s?", nearest.best);
}

static size_t count_streams(const struct tk_report_set *set) {
  size_t n = 0;

  for (size_t i = 0; i < set->n; i++) n += strcmp(set->report[i]->kind, "tasks") == 0;
  return n;
}

static void say(const char *verb, const struct search *s) {
  char id[TK_STREAM_TEXT], latency[TK_FORMAT_BYTES], ended[TC_TIME_BYTES];

  tk_note(verb, "the slowest %s of %zu streams took %s: %s/%s, --stream %s", s->type,
          count_streams(s->set), tk_format_ns(s->best_ns, latency), s->best->service,
          s->best->instance, tk_stream_text(&s->best->stream, DIGITS, id));
  if (s->slower == NULL) return;
  tc_time_format(s->slower->ended_wall_ns, ended);
  tk_note(verb, "one of %s is in %s/%s, which ended %s: --stream %s",
          tk_format_ns(s->slower_ns, latency), s->slower->service, s->slower->instance, ended,
          tk_stream_text(&s->slower->stream, DIGITS, id));
}

static tb_rc take(const struct search *s, const char *verb, uint64_t window_ns,
                  struct tk_selector *selector, struct tb_diag *diag) {
  char list[LIST_BYTES];

  if (s->best == NULL) {
    list_types(s->set, s->type, list);
    return tb_fail(diag, TB_NOTFOUND, "no complete task or region \"%.60s\" then, in %zu streams%s",
                   s->type, count_streams(s->set), list);
  }
  if (s->best->stream.len != sizeof selector->stream)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  memcpy(selector->stream, s->best->stream.data, sizeof selector->stream);
  selector->has_stream = true;
  /* It began so long before its end, which is in the window. */
  selector->last_ns = window_ns != 0 ? window_ns + s->best_ns : 0;
  say(verb, s);
  return TB_OK;
}

tb_rc tk_why_slowest(struct tk_client *client, const char *verb, const char *type,
                     enum to_window window, struct tk_selector *selector, struct tb_diag *diag) {
  struct tk_report_ask ask = { .window = window, .sum = TK_SUM_NONE, .verb = verb };
  uint64_t window_ns = (uint64_t)to_window_length(window);
  struct tk_report_set set;

  if (selector->has_stream) return TB_OK;
  ask.kind[TO_ANALYSIS_TASKS] = ask.kind[TO_ANALYSIS_REGIONS] = true;
  tk_report_set_init(&set);
  struct search search = { .set = &set, .type = type };
  tb_rc rc = tk_report_live(client, &ask, selector, &set, diag);
  if (rc == TB_OK && count_streams(&set) > 1) {
    find(client, &search, window_ns);
    rc = take(&search, verb, window_ns, selector, diag);
  }
  tk_report_set_fini(&set);
  return rc;
}
