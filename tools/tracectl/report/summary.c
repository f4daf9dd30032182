/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "online/spans/stacks/callstack.h"
#include "online/spans/stacks/library.h"
#include "pack/report.h"
#include "pack/summary/summary.h"
#include "tools/tracectl/remote/names.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"

enum { LINES = 15, PAGE_COLUMNS = 100, INDENT = 3 };
enum { PLACE_BYTES = 240, WORDS_BYTES = 600, FOUND_MAX = 64, TITLE_BYTES = 200 };

static const uint64_t QUIET_NS = UINT64_C(60000000000);

typedef Tracecollect__V1__SummaryReply summary_reply;

/* ---- findings of a file ---- */

struct tk_found {
  struct tp_summary_finding seen;
  enum to_finding_kind kind;
  uint64_t count, turn; /* turn: when it was last seen */
  char place[PLACE_BYTES], cause[PLACE_BYTES], words[WORDS_BYTES];
};

struct noting {
  struct tk_report_set *set;
  tb_rc rc;
};

static void write_place(const struct to_callstack *stack, char out[PLACE_BYTES]) {
  const struct to_frame *frame = to_callstack_own(stack);

  out[0] = '\0';
  if (frame == NULL || frame->function.len == 0) return;
  uint64_t line = to_library_line(frame);
  snprintf(out, PLACE_BYTES, line > 0 ? "%.*s:%" PRIu64 : "%.*s",
           (int)(frame->function.len < 200 ? frame->function.len : 200), frame->function.data,
           line);
}

static tb_rc find_found(struct tk_report_set *set, const struct to_finding *finding,
                        struct tk_found **out) {
  char place[PLACE_BYTES];

  write_place(finding->stack, place);
  for (size_t i = 0; i < set->found; i++) {
    *out = set->finding[i];
    if ((*out)->kind == finding->kind && strcmp((*out)->place, place) == 0) return TB_OK;
  }
  *out = NULL;
  if (set->found == FOUND_MAX) return TB_OK;
  TB_TRY(TB_ARENA_GROW(&set->arena, set->finding, set->found_room, set->found));
  TB_TRY(tb_arena_alloc(&set->arena, sizeof **out, out));
  **out = (struct tk_found){ .kind = finding->kind };
  memcpy((*out)->place, place, sizeof place);
  set->finding[set->found++] = *out;
  return TB_OK;
}

static void note(void *self, const struct to_finding *finding) {
  struct noting *noting = self;
  struct tk_found *found = NULL;

  if (noting->rc == TB_OK) noting->rc = find_found(noting->set, finding, &found);
  if (noting->rc != TB_OK || found == NULL) return;
  found->turn = noting->set->turn;
  if (found->words[0] != '\0' && finding->count < found->count) return;
  found->count = finding->count;
  snprintf(found->cause, sizeof found->cause, "%.*s", (int)finding->cause.len,
           finding->cause.len > 0 ? finding->cause.data : "");
  tp_finding_words(finding, found->words, sizeof found->words);
}

tb_rc tk_summary_note(struct tk_report_set *set, struct to_analyses *analyses) {
  struct noting noting = { .set = set };

  set->turn++;
  TB_TRY(to_analyses_findings(analyses, &(struct to_finding_sink){ &noting, note }));
  return noting.rc;
}

static tb_rc take_findings(struct tk_report_set *set, struct tp_summary_finding **out) {
  TB_TRY(tb_arena_alloc(&set->arena, (set->found + 1) * sizeof **out, out));
  for (size_t i = 0; i < set->found; i++) {
    const struct tk_found *f = set->finding[i];
    (*out)[i] = (struct tp_summary_finding){ .kind = to_finding_name(f->kind),
                                             .words = f->words,
                                             .place = f->place,
                                             .cause = f->cause,
                                             .id = "",
                                             .is_open = f->turn == set->turn };
  }
  return TB_OK;
}

/* ---- output ---- */

/* Prints text in lines of a page's width, those after the first indented, unless is_dry. Returns how many lines. */
static unsigned wrap(const char *text, bool is_dry) {
  size_t column = 0;
  unsigned lines = 1;

  for (size_t n; *text != '\0'; text += n + (text[n] != '\0')) {
    n = strcspn(text, " ");
    bool breaks = column > INDENT && column + 1 + n > PAGE_COLUMNS;
    lines += breaks;
    if (!is_dry) printf("%s%.*s", breaks ? "\n   " : column > 0 ? " " : "", (int)n, text);
    column = (breaks ? INDENT : column + (column > 0)) + n;
  }
  if (!is_dry) putchar('\n');
  return lines;
}

static void print_words(const char *words) {
  char plain[1024];

  snprintf(plain, sizeof plain, "%s", words);
  tk_plain_text(plain);
  fputs(plain, stdout);
}

/* Prints the options that lead a command to the same collector. */
static tb_rc print_where(const struct tk_client_args *at) {
  const struct {
    const char *name, *value;
  } options[] = { { "server", at->server },   { "certs", at->certs },
                  { "tls-ca", at->tls_ca },   { "tls-cert", at->tls_cert },
                  { "tls-key", at->tls_key }, { "tls-crl", at->tls_crl } };
  struct tb_arena arena;
  tb_rc rc = TB_OK;

  tb_arena_init(&arena, &tk_mem, 1024);
  for (size_t i = 0; rc == TB_OK && i < sizeof options / sizeof *options; i++) {
    const char *word;
    if (options[i].value == NULL) continue;
    rc = tp_summary_quote(&arena, options[i].value, &word);
    if (rc == TB_OK) printf(" --%s %s", options[i].name, word);
  }
  tb_arena_fini(&arena);
  return rc;
}

/* Prints a sentence, and the command below it, if lines are left for both. */
static tb_rc print_sentence(const Tracecollect__V1__Sentence *sentence, unsigned number,
                            bool has_services, const struct tk_client_args *at, unsigned *lines) {
  bool has_name = has_services && sentence->service[0] != '\0';
  char text[1024], count[12] = "  ";

  if (number > 0) snprintf(count, sizeof count, "%u.", number);
  snprintf(text, sizeof text, "%s %s%s%s", count, has_name ? sentence->service : "",
           has_name ? ": " : "", sentence->text);
  tk_plain_text(text);
  unsigned needed = wrap(text, true) + (sentence->more[0] != '\0');
  if (needed > *lines) return TB_OK;
  *lines -= needed;
  wrap(text, false);
  if (sentence->more[0] == '\0') return TB_OK;
  printf("%*s", INDENT + 2, "");
  print_words(sentence->more);
  tb_rc rc = at != NULL ? print_where(at) : TB_OK;
  putchar('\n');
  return rc;
}

static void print_head(const summary_reply *reply, const char *title, size_t live) {
  char count[TK_FORMAT_BYTES], time[TK_FORMAT_BYTES];

  print_words(title);
  printf(": %s", reply->time_ns > 0 ? tk_format_ns(reply->time_ns, time) : "no time");
  if (reply->streams > 1) printf(", %" PRIu64 " streams", reply->streams);
  if (reply->streams > 1 && live < reply->streams) printf(", %zu live", live);
  if (reply->generations > 0 && reply->streams == 1)
    printf(", %" PRIu64 " generation%s", reply->generations, reply->generations == 1 ? "" : "s");
  printf(", %s events\n", tk_format_count(reply->events, count));
}

static tb_rc print_json(const summary_reply *reply) {
  for (size_t i = 0; i < reply->n_sentences; i++)
    if (!tk_json_print(NULL, &reply->sentences[i]->base)) return TB_NOMEM;
  return TB_OK;
}

static bool has_services(const summary_reply *reply) {
  const char *first = NULL;

  for (size_t i = 0; i < reply->n_sentences; i++) {
    const char *service = reply->sentences[i]->service;
    if (first != NULL && service[0] != '\0' && strcmp(first, service) != 0) return true;
    if (service[0] != '\0') first = service;
  }
  return false;
}

/* title: what it is of. live: how many of its streams are connected. at: how its commands reach the collector, NULL for a file. */
static tb_rc print(const summary_reply *reply, const char *title, size_t live,
                   const struct tk_client_args *at, bool is_json) {
  unsigned lines = LINES - 1, number = 0;

  if (is_json) return print_json(reply);
  print_head(reply, title, live);
  for (size_t i = 0; i < reply->n_sentences; i++) {
    const Tracecollect__V1__Sentence *sentence = reply->sentences[i];
    bool is_figure = strcmp(sentence->kind, "nothing") != 0;
    unsigned left = lines;
    TB_TRY(print_sentence(sentence, is_figure ? number + 1 : 0, has_services(reply), at, &lines));
    if (is_figure && lines < left) number++; /* it was printed */
  }
  return TB_OK;
}

/* ---- a file ---- */

static tb_rc sum_up_file(struct tk_report_set *set, const char *path, summary_reply **out) {
  struct tp_summary_of of = {
    .report = set->report, .reports = set->n, .service = "", .source = "", .window = ""
  };
  struct tp_summary_finding *finding;
  struct tp_summary summary;

  TB_TRY(take_findings(set, &finding));
  of.finding = finding;
  of.findings = set->found;
  bool is_kept = tk_url_is(path) && tk_url_kept() != NULL;
  const char *again = is_kept ? tk_url_kept() : path; /* what the commands read */
  if (strcmp(path, "-") != 0) TB_TRY(tp_summary_quote(&set->arena, again, &of.source));
  tp_summary_init(&summary, &set->arena);
  TB_TRY(tp_summary_add(&summary, &of));
  return tp_summary_take(&summary, out);
}

/* Reports that make no sentence are not made. */
int tk_summarize_file(struct tk_report_ask *ask, const char *path, bool is_json) {
  struct tk_report_set set;
  summary_reply *reply;
  tb_rc rc = TB_OK;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    ask->kind[k] = tp_summary_needs((enum to_analysis_kind)k);
  ask->rows_max = TP_REPORT_ROWS_LIVE;
  ask->findings = true;
  tk_report_set_init(&set);
  int broken = tk_report_file(path, ask, &set);
  if (set.n > 0) rc = sum_up_file(&set, path, &reply);
  if (set.n > 0 && rc == TB_OK) rc = print(reply, path, SIZE_MAX, NULL, is_json);
  if (set.n > 0 && rc == TB_OK && tk_url_is(path) && tk_url_kept() == NULL)
    tk_note(ask->verb, "these commands ask %s again; --keep t.trace keeps the trace for them",
            path);
  tk_report_set_fini(&set);
  return rc == TB_OK ? broken : tk_fail(ask->verb, "%s", tb_rc_text(rc));
}

int tk_summary_lead_file(struct tk_report_set *set, const char *path) {
  summary_reply *reply;

  if (set->n == 0) return TK_DONE;
  tb_rc rc = sum_up_file(set, path, &reply);
  if (rc == TB_OK) rc = print(reply, path, SIZE_MAX, NULL, false);
  putchar('\n');
  return rc == TB_OK ? TK_DONE : tk_fail("report", "%s", tb_rc_text(rc));
}

/* ---- a collector ---- */

static char *text_of(const char *text) {
  return (char *)(uintptr_t)(text != NULL ? text : "");
}

static tb_rc ask_live(struct tk_client *client, const struct tk_selector *selector,
                      enum to_window window, struct tb_diag *diag, const summary_reply **out) {
  Tracecollect__V1__SummaryRequest request = TRACECOLLECT__V1__SUMMARY_REQUEST__INIT;

  request.service = text_of(selector->service);
  request.instance = text_of(selector->instance);
  request.window = text_of(to_window_name(window));
  if (selector->has_stream) {
    request.stream.data = (unsigned char *)(uintptr_t)selector->stream;
    request.stream.len = sizeof selector->stream;
  }
  return tk_client_ask(client, TP_ROUTE_SUMMARY, "", &request.base, diag, out);
}

/* The selected streams, as the collector knows them. */
struct streams {
  size_t live;
  uint64_t newest_wall_ns, now_wall_ns; /* now: by the collector's clock; 0: not known */
};

static bool is_selected(const struct tk_selector *which, const Tracecollect__V1__StreamStatus *s) {
  return (which->service == NULL || strcmp(s->service, which->service) == 0) &&
         (which->instance == NULL || strcmp(s->instance, which->instance) == 0) &&
         (!which->has_stream || (s->stream.len == sizeof which->stream &&
                                 memcmp(s->stream.data, which->stream, s->stream.len) == 0));
}

static struct streams find_streams(struct tk_client *client, const struct tk_selector *which) {
  struct streams found = { .live = SIZE_MAX };
  Tracecollect__V1__StatusReply *status;
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  if (tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, &ignored, &status) != TB_OK) return found;
  found.live = 0;
  found.now_wall_ns = status->wall_ns;
  for (size_t i = 0; i < status->n_streams; i++) {
    const Tracecollect__V1__StreamStatus *s = status->streams[i];
    if (!is_selected(which, s)) continue;
    found.live += strcmp(s->state, "live") == 0;
    if (s->newest_wall_ns > found.newest_wall_ns) found.newest_wall_ns = s->newest_wall_ns;
  }
  return found;
}

static void write_window(enum to_window window, const struct streams *streams, char *out,
                         size_t bytes) {
  uint64_t newest_ns = streams->newest_wall_ns;
  char since[TC_TIME_BYTES];

  tc_time_format(newest_ns, since);
  if (window == TO_WINDOW_ALL)
    snprintf(out, bytes, ", since it began");
  else if (newest_ns != 0 && newest_ns + QUIET_NS < streams->now_wall_ns)
    snprintf(out, bytes, ", the last %s before %s (nothing since)", to_window_name(window), since);
  else
    snprintf(out, bytes, ", the last %s", to_window_name(window));
}

static void write_title(const struct tk_selector *which, enum to_window window,
                        const struct streams *streams, char out[TITLE_BYTES]) {
  const char *name = which->service != NULL ? which->service
                     : which->has_stream    ? "this stream"
                                            : "all services";

  if (which->instance != NULL)
    snprintf(out, TITLE_BYTES, "%.64s %.64s", which->service != NULL ? which->service : "instance",
             which->instance);
  else
    snprintf(out, TITLE_BYTES, "%.64s", name);
  size_t n = strlen(out);
  write_window(window, streams, out + n, TITLE_BYTES - n);
}

tb_rc tk_summary_lead(struct tk_client *client, const struct tk_selector *selector,
                      enum to_window window, const struct tk_client_args *at, bool is_json,
                      struct tb_diag *diag) {
  const summary_reply *reply;
  char title[TITLE_BYTES];

  const struct streams streams = find_streams(client, selector);
  TB_TRY(ask_live(client, selector, window, diag, &reply));
  if (reply->n_sentences == 0 ||
      (reply->streams == 0 && strcmp(reply->sentences[0]->kind, "nothing") == 0))
    return tb_fail(diag, TB_NOTFOUND, "no stream matches that has a generation in order yet");
  write_title(selector, window, &streams, title);
  return print(reply, title, streams.live, at, is_json);
}

int tk_summarize_live(const struct tk_report_ask *ask, struct tk_selector *selector,
                      const struct tk_client_args *at, bool is_json) {
  struct tk_client *client;
  struct tb_diag diag;
  int code = TK_DONE;

  tb_diag_clear(&diag);
  tb_rc rc = tk_selector_check(selector, &diag);
  if (rc == TB_OK) rc = tk_remote_open(at, selector, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("report", rc, &diag);
  rc = tk_summary_lead(client, selector, ask->window, at, is_json, &diag);
  if (rc == TB_NOTFOUND)
    code = tk_fail("report", "%s", tk_remote_no_match(client, selector, diag.text));
  else if (rc != TB_OK)
    code = tk_remote_fail("report", rc, &diag);
  tk_client_close(client);
  return code;
}
