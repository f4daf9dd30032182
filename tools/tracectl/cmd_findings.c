/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl findings: what is or was wrong with a collector's services. mute, unmute: whether one is told. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__Finding finding;
typedef Tracecollect__V1__FindingsReply findings_reply;

struct findings_options {
  struct tk_client_args client;
  const char *service, *reason;
  uint64_t since_ns, for_ns;
  bool open, json;
};

static char *text_of(const char *text) {
  return (char *)(uintptr_t)(text != NULL ? text : "");
}

static const char *state_of(const finding *f) {
  if (f->muted_until[0] != '\0') return "muted";
  return f->open ? "open" : "ended";
}

static void add_peak(struct tk_table *table, const finding *f) {
  char peak[TK_FORMAT_BYTES];

  if (f->peak == 0)
    tk_table_add(table, "-");
  else if (strcmp(f->peak_unit, "ns") == 0)
    tk_table_add(table, "%s", tk_format_ns(f->peak, peak));
  else
    tk_table_add(table, "%s", tk_format_count(f->peak, peak));
}

static void add_row(struct tk_table *table, const finding *f) {
  tk_table_add(table, "%s", f->id);
  tk_table_add(table, "%s", state_of(f));
  tk_table_add(table, "%s", f->service);
  tk_table_add(table, "%s", f->kind);
  tk_table_add(table, "%s", f->began_at);
  tk_table_add(table, "%s", f->last_at);
  tk_table_add(table, "%" PRIu64, f->count);
  add_peak(table, f);
  tk_table_add(table, "%s%s%s", f->words, f->mute_reason[0] != '\0' ? "; muted: " : "",
               f->mute_reason);
}

/* Prints what the table has no room for. */
static void print_more(const finding *f) {
  if (f->place[0] != '\0') printf("  place      %s\n", f->place);
  for (size_t i = 0; i < f->n_instances; i++)
    printf("  %-10s %s\n", i == 0 ? "instances" : "", f->instances[i]);
  for (size_t i = 0; i < f->n_history; i++)
    printf("  %-10s %s to %s\n", i == 0 ? "open" : "", f->history[i]->began_at,
           f->history[i]->last_at);
  if (f->muted_until[0] != '\0')
    printf("  muted      until %s: %s\n", f->muted_until, f->mute_reason);
  if (f->link[0] != '\0') printf("  page       %s\n", f->link);
  printf("  trace      %s\n", f->expired ? "expired" : f->fetch);
}

static void print_text(const findings_reply *reply, bool is_one) {
  struct tk_table table;

  tk_table_init(&table, "ID,STATE,SERVICE,KIND,BEGAN,LAST,>COUNT,>PEAK,WHAT");
  for (size_t i = 0; i < reply->n_findings; i++) add_row(&table, reply->findings[i]);
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  if (is_one && reply->n_findings == 1) print_more(reply->findings[0]);
  if (reply->more) tk_note("findings", "there are more; --service, --since and --open choose");
}

/* A service may have findings, but no streams any more. */
static tb_rc check_service(const struct findings_options *o, struct tk_client *client,
                           struct tb_diag *diag) {
  Tracecollect__V1__FindingsRequest any = TRACECOLLECT__V1__FINDINGS_REQUEST__INIT;
  const struct tk_selector which = { .service = o->service };
  const findings_reply *reply;

  any.service = text_of(o->service);
  TB_TRY(tk_client_ask(client, TP_ROUTE_FINDINGS, "", &any.base, diag, &reply));
  return reply->n_findings > 0 ? TB_OK : tk_remote_check_names(client, &which, diag);
}

static tb_rc ask(const struct findings_options *o, enum tp_route_id route,
                 const ProtobufCMessage *message, bool is_one, struct tb_diag *diag) {
  const findings_reply *reply;
  struct tk_client *client;

  TB_TRY(tk_client_open(&o->client, diag, &client));
  tb_rc rc = tk_client_ask(client, route, "", message, diag, &reply);
  bool is_none = rc == TB_OK && reply->n_findings == 0;
  if (rc == TB_OK && is_none && o->service != NULL) rc = check_service(o, client, diag);
  if (rc == TB_OK && is_none && !o->json) tk_note("findings", "none");
  if (rc == TB_OK && !is_none && !o->json) print_text(reply, is_one);
  for (size_t i = 0; rc == TB_OK && !is_none && o->json && i < reply->n_findings; i++)
    if (!tk_json_print(NULL, &reply->findings[i]->base)) rc = TB_NOMEM;
  tk_client_close(client);
  return rc;
}

static int ask_and_exit(const struct findings_options *o, enum tp_route_id route,
                        const ProtobufCMessage *message, bool is_one) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ask(o, route, message, is_one, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("findings", rc, &diag);
}

static int list(const struct findings_options *o, const char *id) {
  Tracecollect__V1__FindingsRequest request = TRACECOLLECT__V1__FINDINGS_REQUEST__INIT;

  if (o->for_ns != 0 || o->reason != NULL)
    return tk_usage("findings", "--for and --reason are for 'findings mute ID'");
  request.service = text_of(o->service);
  request.since_ns = o->since_ns;
  request.open = o->open;
  request.id = text_of(id);
  return ask_and_exit(o, TP_ROUTE_FINDINGS, &request.base, id != NULL);
}

static int mute(const struct findings_options *o, const char *id) {
  Tracecollect__V1__MuteRequest request = TRACECOLLECT__V1__MUTE_REQUEST__INIT;

  if (id == NULL)
    return tk_usage("findings", "mute: an ID is required; 'tracectl findings' has it");
  if (o->for_ns == 0 || o->reason == NULL)
    return tk_usage("findings", "mute: --for SPAN (8h, 7d) and --reason TEXT are required");
  request.id = text_of(id);
  request.for_ns = o->for_ns;
  request.reason = text_of(o->reason);
  return ask_and_exit(o, TP_ROUTE_FINDING_MUTE, &request.base, true);
}

static int unmute(const struct findings_options *o, const char *id) {
  Tracecollect__V1__MuteRequest request = TRACECOLLECT__V1__MUTE_REQUEST__INIT;

  if (id == NULL)
    return tk_usage("findings", "unmute: an ID is required; 'tracectl findings' has it");
  request.id = text_of(id);
  return ask_and_exit(o, TP_ROUTE_FINDING_MUTE, &request.base, true);
}

static const struct word {
  const char *text;
  int (*act)(const struct findings_options *o, const char *id);
} words[] = { { "list", list }, { "mute", mute }, { "unmute", unmute } };

static const struct word *find_word(const char *text) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].text, text) == 0) return &words[i];
  return NULL;
}

#define AT(member) offsetof(struct findings_options, member)
const struct tk_option tk_findings_options[] = {
  TK_HELP("list [ID]", "all that are open, then what ended, the newest first; the default. With an "
                       "ID, which may stand alone: its instances, times and part of the trace"),
  TK_HELP("mute ID",
          "do not log this one, or show it among the open ones; on the collector's own host"),
  TK_HELP("unmute ID", "end that"),
  TK_OPTION(0, "service", "S", tk_read_text, AT(service), "only of this service"),
  TK_OPTION(0, "since", "T", tk_read_time, AT(since_ns),
            "only what was seen at T or later, by the program's own clock: RFC 3339, -5m or @UNIX"),
  TK_OPTION(0, "open", NULL, tk_read_flag, AT(open), "only what is open"),
  TK_OPTION(0, "for", "SPAN", tk_read_span, AT(for_ns), "for mute: how long"),
  TK_OPTION(0, "reason", "TEXT", tk_read_text, AT(reason), "for mute: why"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a finding"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

static bool is_id(const char *text) {
  return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

int tk_cmd_findings(int argc, char **argv) {
  struct findings_options o = { .service = NULL };
  int code = tk_options_read(argc, argv, tk_findings_options, &o);

  if (code != TK_DONE) return code;
  if (optind == argc) return list(&o, NULL);
  const struct word *word = find_word(argv[optind]);
  if (word == NULL && argc - optind == 1 && is_id(argv[optind])) return list(&o, argv[optind]);
  if (word == NULL)
    return tk_usage("findings",
                    "'%s' is not one of list, mute, unmute; for a service: --service %s",
                    argv[optind], argv[optind]);
  if (argc - optind > 2)
    return tk_usage("findings", "%s: unexpected argument '%s'", word->text, argv[optind + 2]);
  return word->act(&o, argv[optind + 1]);
}
