/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl history: the reports that a collector archives and keeps longer than the traces, a line for each
 * stretch of a stream. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/times.h"
#include "online/analysis/analysis.h"
#include "pack/report.h"
#include "pack/report_json.h"
#include "pack/report_read.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/names/meant.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/report/cell.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

enum { LIST_BYTES = 200 };

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__FieldSchema FieldSchema;

struct history_options {
  struct tk_client_args client;
  struct tk_selector selector;
  const char *kind; /* "all": every kind */
  bool json, figures_only;

  struct tk_table table;
  struct tb_arena arena;
  Tracecollect__V1__ReportSchema *schema; /* its figures are the columns */
  uint64_t reports, damaged;
};

/* Columns of a distribution. */
static const enum tk_part parts[] = { TK_PART_COUNT, TK_PART_P99, TK_PART_MAX };
enum { PARTS = sizeof parts / sizeof *parts };

static bool is_distribution(const FieldSchema *figure) {
  return figure->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

static void begin_table(struct history_options *o) {
  char name[TK_CELL_BYTES];
  struct tb_buf head;

  tb_buf_init(&head, &tk_mem);
  tb_buf_text(&head, "TIME,STREAM");
  for (size_t i = 0; i < o->schema->n_figures; i++) {
    const FieldSchema *figure = o->schema->figures[i];
    tk_cell_name(figure, name);
    if (!is_distribution(figure)) tb_buf_printf(&head, ",>%s", name);
    for (size_t p = 0; is_distribution(figure) && p < PARTS; p++)
      tb_buf_printf(&head, ",>%s.%s", name, tk_part_name(parts[p]));
  }
  tb_buf_byte(&head, '\0');
  tk_table_init(&o->table, (const char *)head.data);
  tb_buf_fini(&head);
}

static void add_cell(struct history_options *o, const StreamReport *report,
                     const FieldSchema *figure, enum tk_part part) {
  char text[TK_CELL_BYTES];

  tk_cell_text(report, figure, tp_report_figure(report->report, figure->name), part, text);
  tk_table_add(&o->table, "%s", text[0] != '\0' ? text : "-");
}

static void add_row(struct history_options *o, const StreamReport *report) {
  char time[TC_TIME_BYTES];

  tc_time_format(report->until_wall_ns, time);
  tk_table_add(&o->table, "%s", time);
  tk_table_add(&o->table, "%s/%s", report->service, report->instance);
  for (size_t i = 0; i < o->schema->n_figures; i++) {
    const FieldSchema *figure = o->schema->figures[i];
    if (!is_distribution(figure)) add_cell(o, report, figure, TK_PART_WHOLE);
    for (size_t p = 0; is_distribution(figure) && p < PARTS; p++)
      add_cell(o, report, figure, parts[p]);
  }
}

static tb_rc print_json(const StreamReport *report) {
  struct tb_buf line;

  tb_buf_init(&line, &tk_mem);
  tp_report_json(&line, report);
  tb_buf_byte(&line, '\n');
  fwrite(line.data, 1, line.len, stdout);
  tb_rc rc = line.rc;
  tb_buf_fini(&line);
  return rc;
}

static tb_rc take_reports(struct history_options *o, const Tracecollect__V1__HistoryReply *reply) {
  o->reports += reply->n_reports;
  o->damaged += reply->damaged;
  for (size_t i = 0; i < reply->n_reports; i++) {
    if (o->json)
      TB_TRY(print_json(reply->reports[i]));
    else if (reply->reports[i]->report != NULL)
      add_row(o, reply->reports[i]);
  }
  return TB_OK;
}

/* The place is copied, because the next request overwrites the reply. */
static tb_rc ask_all(struct history_options *o, struct tk_client *client, struct tb_diag *diag) {
  Tracecollect__V1__HistoryRequest ask = TRACECOLLECT__V1__HISTORY_REQUEST__INIT;
  unsigned char stream[sizeof o->selector.stream];
  const Tracecollect__V1__HistoryReply *reply;
  Tracecollect__V1__Selector which;

  tk_selector_message(&o->selector, &which);
  ask.selector = &which;
  ask.figures_only = o->figures_only || !o->json;
  do {
    TB_TRY(tk_client_ask(client, TP_ROUTE_HISTORY, o->kind, &ask.base, diag, &reply));
    TB_TRY(take_reports(o, reply));
    if (!reply->more) break;
    if (reply->after_stream.len != sizeof stream)
      return tb_fail(diag, TB_PROTOCOL, "the reply has more pages, but no place to continue from");
    memcpy(stream, reply->after_stream.data, sizeof stream);
    ask.after_stream = (ProtobufCBinaryData){ sizeof stream, stream };
    ask.after_ns = reply->after_ns;
  } while (true);
  return TB_OK;
}

static int answer(struct history_options *o, struct tk_client *client) {
  static const char none[] =
      "no report is archived for that; the first is made when a stream is as old as "
      "the collector's reports.every";
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ask_all(o, client, &diag);
  if (!o->json && o->reports > 0) tk_table_print(&o->table, stdout, false);
  if (rc != TB_OK) return tk_remote_fail("history", rc, &diag);
  if (o->damaged > 0)
    tk_note("history", "%" PRIu64 " stretch%s left out, whose records are damaged", o->damaged,
            o->damaged > 1 ? "es" : "");
  if (o->reports > 0) return TK_DONE;
  return tk_fail("history", "%s", tk_remote_no_match(client, &o->selector, none));
}

static int run_history(struct history_options *o) {
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_remote_open(&o->client, &o->selector, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("history", rc, &diag);
  if (!o->json) begin_table(o);
  int code = answer(o, client);
  if (!o->json) tk_table_fini(&o->table);
  tk_client_close(client);
  return code;
}

static void list_kinds(char *out, size_t bytes) {
  size_t n = 0;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && n < bytes; k++)
    n += (size_t)snprintf(out + n, bytes - n, "%s%s", k > 0 ? ", " : "",
                          to_analysis_name((enum to_analysis_kind)k));
}

static int complain_of_kind(const char *text) {
  const char *meant = tk_kind_meant(text);
  char kinds[LIST_BYTES];

  list_kinds(kinds, sizeof kinds);
  if (meant != NULL)
    return tk_usage("history", "'%s' is not a kind of report; did you mean \"%s\"?", text, meant);
  return tk_usage("history", "'%s' is not a kind of report; there are %s", text, kinds);
}

static int complain_of_number(int argc) {
  char kinds[LIST_BYTES];

  list_kinds(kinds, sizeof kinds);
  if (argc > 0) return tk_usage("history", "one KIND of report at a time, or all with --json");
  return tk_usage("history", "one KIND of report is required: %s; or all with --json", kinds);
}

static int take_kind(struct history_options *o, const char *text) {
  enum to_analysis_kind kind;

  if (strcmp(text, "all") == 0 && o->json) {
    o->kind = text;
    return TK_DONE;
  }
  if (strcmp(text, "all") == 0) return tk_usage("history", "all kinds together need --json");
  if (!to_analysis_find(text, &kind)) return complain_of_kind(text);
  o->kind = to_analysis_name(kind);
  if (tp_take_schema(&o->arena, kind, &o->schema) != TB_OK)
    return tk_fail("history", "out of memory");
  return TK_DONE;
}

#define AT(member) offsetof(struct history_options, member)
const struct tk_option tk_history_options[] = {
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_GROUP(tk_time_options, AT(selector)),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json),
            "one object a stretch, as of report; all kinds with KIND all"),
  TK_OPTION(0, "figures", NULL, tk_read_flag, AT(figures_only), "with --json: without tables"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

static int check(struct history_options *o, int argc, char **argv) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (optind != argc - 1) return complain_of_number(argc - optind);
  if (tk_selector_check(&o->selector, &diag) != TB_OK) return tk_usage("history", "%s", diag.text);
  return take_kind(o, argv[optind]);
}

int tk_cmd_history(int argc, char **argv) {
  struct history_options o = { .kind = "all" };
  int code = tk_options_read(argc, argv, tk_history_options, &o);

  tb_arena_init(&o.arena, &tk_mem, 4096);
  if (code == TK_DONE) code = check(&o, argc, argv);
  if (code == TK_DONE) code = run_history(&o);
  tb_arena_fini(&o.arena);
  return code;
}
