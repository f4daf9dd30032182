/* SPDX-License-Identifier: Apache-2.0 */
/* The collector adds up some of a stream's reports an answer; these sums are added up here, first of each stream, then of
 * all streams. */
#include "tools/tracectl/report/kept.h"

#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "pack/sum.h"
#include "tools/tracectl/term/tracectl.h"

enum { PART_BYTES = 8 << 20 };

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__HistoryRequest HistoryRequest;
typedef Tracecollect__V1__HistoryReply HistoryReply;

struct reading {
  struct tk_client *client;
  struct tk_report_set *set;
  enum tk_sum sum;
  unsigned char stream[sizeof((struct tk_selector){ 0 }).stream];
  struct tp_sum of_stream[TO_ANALYSIS_KINDS], of_all[TO_ANALYSIS_KINDS];
  uint64_t damaged;
};

/* all: of which the stream is a part, too; NULL: none. */
static tb_rc put_stream(struct reading *r, struct tp_sum *sum, struct tp_sum *all) {
  struct tb_arena arena;
  StreamReport *report;

  if (r->sum == TK_SUM_NONE || all == NULL) {
    TB_TRY(tp_sum_take(sum, &r->set->arena, &report));
    return tk_report_set_put(r->set, report);
  }
  tb_arena_init(&arena, &tk_mem, PART_BYTES / 64);
  tb_rc rc = tp_sum_take(sum, r->sum == TK_SUM_ONLY ? &arena : &r->set->arena, &report);
  if (rc == TB_OK) rc = tp_sum_add_report(all, report);
  if (rc == TB_OK && r->sum != TK_SUM_ONLY) rc = tk_report_set_put(r->set, report);
  tb_arena_fini(&arena);
  return rc;
}

static tb_rc end_stream(struct reading *r) {
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (r->of_stream[k].parts > 0) TB_TRY(put_stream(r, &r->of_stream[k], &r->of_all[k]));
  return TB_OK;
}

static tb_rc put_sums(struct reading *r) {
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    uint64_t parts = r->of_all[k].parts;
    if (parts == 0 || (parts == 1 && r->sum != TK_SUM_ONLY)) continue;
    TB_TRY(put_stream(r, &r->of_all[k], NULL));
    if (r->sum == TK_SUM_FIRST) TB_TRY(tk_report_set_is_sum(r->set));
  }
  return TB_OK;
}

/* Answers are grouped by stream. */
static tb_rc take_reports(struct reading *r, const HistoryReply *reply) {
  enum to_analysis_kind kind;

  r->damaged += reply->damaged;
  for (size_t i = 0; i < reply->n_reports; i++) {
    const StreamReport *report = reply->reports[i];
    if (report->stream.len != sizeof r->stream || !to_analysis_find(report->kind, &kind)) continue;
    if (memcmp(report->stream.data, r->stream, sizeof r->stream) != 0) TB_TRY(end_stream(r));
    memcpy(r->stream, report->stream.data, sizeof r->stream);
    TB_TRY(tp_sum_add_report(&r->of_stream[kind], report));
  }
  return TB_OK;
}

/* The place is copied, because the next request overwrites the reply. */
static tb_rc ask_all(struct reading *r, const char *kind, const struct tk_selector *selector,
                     struct tb_diag *diag) {
  HistoryRequest ask = TRACECOLLECT__V1__HISTORY_REQUEST__INIT;
  unsigned char stream[sizeof selector->stream];
  Tracecollect__V1__Selector which;
  const HistoryReply *reply;

  tk_selector_message(selector, &which);
  ask.selector = &which;
  ask.sum = true;
  do {
    TB_TRY(tk_client_ask(r->client, TP_ROUTE_HISTORY, kind, &ask.base, diag, &reply));
    TB_TRY(take_reports(r, reply));
    if (!reply->more) return end_stream(r);
    if (reply->after_stream.len != sizeof stream)
      return tb_fail(diag, TB_PROTOCOL, "the reply has more pages, but no place to continue from");
    memcpy(stream, reply->after_stream.data, sizeof stream);
    ask.after_stream = (ProtobufCBinaryData){ sizeof stream, stream };
    ask.after_ns = reply->after_ns;
  } while (true);
}

/* All kinds come in one pass over the records. */
static tb_rc ask_kinds(struct reading *r, const struct tk_report_ask *ask,
                       const struct tk_selector *selector, struct tb_diag *diag) {
  unsigned kinds = 0;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) kinds += ask->kind[k];
  if (kinds == TO_ANALYSIS_KINDS) return ask_all(r, "all", selector, diag);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (ask->kind[k])
      TB_TRY(ask_all(r, to_analysis_name((enum to_analysis_kind)k), selector, diag));
  return TB_OK;
}

/* Extends the time to the begin and the end of what is kept. */
static tb_rc find_times(struct tk_client *client, const struct tk_selector *selector,
                        uint64_t *out_from_ns, uint64_t *out_until_ns, struct tb_diag *diag) {
  struct tk_selector any = { .service = selector->service, .instance = selector->instance };
  struct tk_report_ask ask = { .kind[TO_ANALYSIS_STW] = true, .sum = TK_SUM_NONE };
  struct tk_report_set set;
  uint64_t damaged;

  tk_report_set_init(&set);
  tb_rc rc = tk_report_kept(client, &ask, &any, &set, &damaged, diag);
  for (size_t i = 0; rc == TB_OK && i < set.n; i++) {
    const StreamReport *report = set.report[i];
    if (report->from_wall_ns < *out_from_ns) *out_from_ns = report->from_wall_ns;
    if (report->until_wall_ns > *out_until_ns) *out_until_ns = report->until_wall_ns;
  }
  tk_report_set_fini(&set);
  return rc;
}

const char *tk_report_kept_none(struct tk_client *client, const struct tk_selector *selector) {
  static char text[160];
  char from[TC_TIME_BYTES], until[TC_TIME_BYTES];
  uint64_t from_ns = UINT64_MAX, until_ns = 0;
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  tb_rc rc = find_times(client, selector, &from_ns, &until_ns, &ignored);
  if (rc != TB_OK) return "no report is kept of that time";
  if (until_ns == 0)
    return "no report is kept of that time, and none of another: the first is made when a stream "
           "is "
           "as old as the collector's reports.every";
  tc_time_format(from_ns, from);
  tc_time_format(until_ns, until);
  snprintf(text, sizeof text, "no report is kept of that time; there are some of %s to %s", from,
           until);
  return text;
}

tb_rc tk_report_kept(struct tk_client *client, const struct tk_report_ask *ask,
                     const struct tk_selector *selector, struct tk_report_set *set,
                     uint64_t *out_damaged, struct tb_diag *diag) {
  bool is_service = selector->service != NULL && !selector->has_stream;
  struct reading r = { .client = client, .set = set, .sum = is_service ? ask->sum : TK_SUM_NONE };

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    tp_sum_init(&r.of_stream[k], &tk_mem, tp_merge_stretches, PART_BYTES);
    tp_sum_init(&r.of_all[k], &tk_mem, tp_merge, PART_BYTES);
  }
  tb_rc rc = ask_kinds(&r, ask, selector, diag);
  if (rc == TB_OK) rc = put_sums(&r);
  if (rc != TB_OK && diag->rc == TB_OK)
    rc = tb_fail(diag, rc, "the kept reports cannot be added up: %s", tb_rc_text(rc));
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    tp_sum_fini(&r.of_stream[k]);
    tp_sum_fini(&r.of_all[k]);
  }
  *out_damaged = r.damaged;
  return rc == TB_OK ? tk_report_set_live_first(set) : rc;
}
