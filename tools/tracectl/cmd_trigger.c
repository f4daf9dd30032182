/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl trigger list|add|remove: a collector's rules. history: its firings. test RULE: when a rule would have fired, in files or
 * in a collector's archive. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/times.h"
#include "proto/json.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trigger/replay.h"

#define HISTORY_COLUMNS "TIME,STREAM,>GEN,TRIGGER,WHAT"

struct trigger_options {
  struct tk_inputs inputs;
  bool json;
  uint64_t fired;
  struct tk_table table;
};

/* ---- rules ---- */

static int add_rules(struct tr_rules *rules, const char *text) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc =
      text[0] == '@' ? tr_rules_read(rules, text + 1, &diag) : tr_rules_add(rules, text, &diag);
  if (rc == TB_IO) return tk_fail("trigger", "%s", diag.text);
  return rc == TB_OK ? TK_DONE : tk_usage("trigger", "%s", diag.text);
}

/* ---- test output ---- */

static void put_text(struct tb_buf *line, const char *name, const char *text) {
  tb_buf_printf(line, "%s\"%s\":", line->len > 0 ? "," : "{", name);
  tp_json_text(line, text);
}

static void print_json(const struct tk_replay_fired *fired) {
  struct tb_buf line;

  tb_buf_init(&line, &tk_mem);
  put_text(&line, "trigger", fired->fired->rule->name);
  put_text(&line, "stream", fired->stream);
  tb_buf_printf(&line, ",\"gen\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"time_ns\":%" PRId64,
                fired->gen, fired->wall_ns, fired->time);
  put_text(&line, "words", fired->fired->words);
  tb_buf_text(&line, "}\n");
  fwrite(line.data, 1, line.len, stdout);
  tb_buf_fini(&line);
}

static void on_fired(void *self, const struct tk_replay_fired *fired) {
  struct trigger_options *o = self;
  char time[TC_TIME_BYTES];

  o->fired++;
  if (o->json) {
    print_json(fired);
    return;
  }
  if (fired->wall_ns != 0)
    tc_time_format(fired->wall_ns, time);
  else
    snprintf(time, sizeof time, "%" PRId64 " ns", fired->time);
  tk_table_add(&o->table, "%s", time);
  tk_table_add(&o->table, "%s", fired->stream);
  tk_table_add(&o->table, "%" PRIu64, fired->gen);
  tk_table_add(&o->table, "%s", fired->fired->rule->name);
  tk_table_add(&o->table, "%s", fired->fired->words);
}

static void print_table(const struct trigger_options *o) {
  if (!o->json && o->fired > 0) tk_table_print(&o->table, stdout, false);
}

static int replay(struct trigger_options *o, struct tr_rules *rules) {
  struct tk_replay replay = { .rules = rules,
                              .is_remote = o->inputs.is_remote,
                              .progress = !o->inputs.no_progress,
                              .self = o,
                              .fired = on_fired };

  tk_table_init(&o->table, HISTORY_COLUMNS);
  int code = tk_replay(&replay, o->inputs.place, o->inputs.n);
  print_table(o);
  tk_table_fini(&o->table);
  if (code != TK_DONE) return code;
  tk_note("trigger", "fires %" PRIu64 " time%s in %" PRIu64 " generation%s of %" PRIu64 " stream%s",
          o->fired, tk_plural(o->fired), replay.generations, tk_plural(replay.generations),
          replay.streams, tk_plural(replay.streams));
  return TK_DONE;
}

static int test(struct trigger_options *o, char **args, int n) {
  struct tr_rules *rules;

  if (n == 0) return tk_usage("trigger", "test: a RULE is required, or @FILE");
  if (tr_rules_new(&rules) != TB_OK) return tk_fail("trigger", "out of memory");
  if (n == 1) o->inputs.is_remote = true;
  int code = add_rules(rules, args[0]);
  if (code == TK_DONE) code = tk_inputs_open(&o->inputs, args + 1, n - 1);
  if (code == TK_DONE) code = replay(o, rules);
  tk_inputs_close(&o->inputs);
  tr_rules_release(rules);
  return code;
}

/* ---- a collector's rules ---- */

static void print_rules(const Tracecollect__V1__TriggerReply *reply) {
  struct tk_table table;
  char time[TC_TIME_BYTES];

  tk_table_init(&table, "NAME,OF,>FIRED,>LIMITED,LAST,STREAM,>GEN,RULE");
  for (size_t i = 0; i < reply->n_rules; i++) {
    const Tracecollect__V1__TriggerRule *rule = reply->rules[i];
    bool has_fired = rule->fired > 0;
    tc_time_format(rule->wall_ns, time);
    tk_table_add(&table, "%s", rule->name);
    tk_table_add(&table, "%s", rule->added ? "added" : "file");
    tk_table_add(&table, "%" PRIu64, rule->fired);
    tk_table_add(&table, "%" PRIu64, rule->limited);
    tk_table_add(&table, "%s", has_fired && rule->wall_ns != 0 ? time : "-");
    tk_table_add(&table, has_fired ? "%s/%s" : "-", rule->service, rule->instance);
    tk_table_add(&table, has_fired ? "%" PRIu64 : "-", rule->gen);
    tk_table_add(&table, "%s", rule->text);
  }
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
}

static tb_rc ask_rules(const struct trigger_options *o, enum tp_route_id route, const char *name,
                       const ProtobufCMessage *ask, struct tb_diag *diag) {
  const Tracecollect__V1__TriggerReply *reply;
  struct tk_client *client;

  TB_TRY(tk_client_open(&o->inputs.client, diag, &client));
  tb_rc rc = tk_client_ask(client, route, name, ask, diag, &reply);
  if (rc == TB_OK && !o->json) print_rules(reply);
  for (size_t i = 0; rc == TB_OK && o->json && i < reply->n_rules; i++)
    if (!tk_json_print("trigger", &reply->rules[i]->base)) rc = TB_NOMEM;
  tk_client_close(client);
  return rc;
}

static int ask(const struct trigger_options *o, enum tp_route_id route, const char *name,
               const ProtobufCMessage *ask) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ask_rules(o, route, name, ask, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("trigger", rc, &diag);
}

static int list(struct trigger_options *o, char **args, int n) {
  if (n != 0) return tk_usage("trigger", "list: unexpected argument '%s'", args[0]);
  return ask(o, TP_ROUTE_TRIGGERS, "", NULL);
}

static int add_rule(struct trigger_options *o, char **args, int n) {
  Tracecollect__V1__TriggerRequest request = TRACECOLLECT__V1__TRIGGER_REQUEST__INIT;

  if (n != 1) return tk_usage("trigger", "add: one RULE is required, in quotes");
  request.add = args[0];
  return ask(o, TP_ROUTE_TRIGGER_ADD, "", &request.base);
}

static int remove_rule(struct trigger_options *o, char **args, int n) {
  if (n != 1) return tk_usage("trigger", "remove: one NAME is required");
  return ask(o, TP_ROUTE_TRIGGER_REMOVE, args[0], NULL);
}

/* ---- history ---- */

static bool add_firing(struct trigger_options *o, const Tracecollect__V1__Firing *firing) {
  char time[TC_TIME_BYTES], left_out[512] = "";
  size_t len = 0;

  if (o->json) return tk_json_print("firing", &firing->base);
  tc_time_format(firing->wall_ns != 0 ? firing->wall_ns : firing->id, time);
  tk_table_add(&o->table, "%s", time);
  tk_table_add(&o->table, "%s/%s", firing->service, firing->instance);
  tk_table_add(&o->table, "%" PRIu64, firing->gen);
  tk_table_add(&o->table, "%s", firing->rule);
  for (size_t i = 0; i < firing->n_limited && len < sizeof left_out; i++)
    len += (size_t)snprintf(left_out + len, sizeof left_out - len, "%s%s",
                            i == 0 ? "; left out: " : ", ", firing->limited[i]);
  tk_table_add(&o->table, "%s%s", firing->words, left_out);
  return true;
}

/* rule: "" for all rules. */
static tb_rc ask_firings(struct trigger_options *o, char *rule, struct tb_diag *diag) {
  Tracecollect__V1__FiringsRequest ask = TRACECOLLECT__V1__FIRINGS_REQUEST__INIT;
  const Tracecollect__V1__FiringsReply *reply;
  struct tk_client *client;
  bool more = true;
  tb_rc rc = TB_OK;

  ask.rule = rule;
  TB_TRY(tk_client_open(&o->inputs.client, diag, &client));
  while (rc == TB_OK && more) {
    rc = tk_client_ask(client, TP_ROUTE_FIRINGS, "", &ask.base, diag, &reply);
    for (size_t i = 0; rc == TB_OK && i < reply->n_firings; i++) {
      ask.after = reply->firings[i]->id;
      if (!add_firing(o, reply->firings[i])) rc = TB_NOMEM;
    }
    more = rc == TB_OK && reply->more;
  }
  tk_client_close(client);
  return rc;
}

static int history(struct trigger_options *o, char **args, int n) {
  static char any[] = "";
  struct tb_diag diag;

  if (n > 1) return tk_usage("trigger", "history: unexpected argument '%s'", args[1]);
  tb_diag_clear(&diag);
  tk_table_init(&o->table, HISTORY_COLUMNS);
  tb_rc rc = ask_firings(o, n == 1 ? args[0] : any, &diag);
  if (rc == TB_OK && !o->json) tk_table_print(&o->table, stdout, false);
  tk_table_fini(&o->table);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("trigger", rc, &diag);
}

static const struct word {
  const char *text;
  int (*act)(struct trigger_options *o, char **args, int n);
} words[] = { { "list", list },
              { "add", add_rule },
              { "remove", remove_rule },
              { "history", history },
              { "test", test } };

static const struct word *find_word(const char *text) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].text, text) == 0) return &words[i];
  return NULL;
}

#define AT(member) offsetof(struct trigger_options, member)
const struct tk_option tk_trigger_options[] = {
  TK_HELP("list", "a collector's rules, and how often each has fired since its start"),
  TK_HELP("add RULE", "add a rule, from now on; on the collector's own host"),
  TK_HELP("remove NAME", "remove a rule that was added; rules of trigger.file are changed there"),
  TK_HELP("history [NAME]",
          "what has fired, oldest first; a collector keeps 2,000, of each rule its share"),
  TK_HELP("test RULE", "when it would have fired in these traces, or in what a collector has"),
  TK_HELP("test @FILE", "as test RULE, for a file with one rule a line"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a rule, or each time one fires"),
  TK_HELP(NULL, "For test (the options that name the collector are for all):"),
  TK_GROUP(tk_inputs_options, AT(inputs)),
  { 0 },
};

int tk_cmd_trigger(int argc, char **argv) {
  struct trigger_options o = { .inputs = { .verb = "trigger" } };
  int code = tk_options_read(argc, argv, tk_trigger_options, &o);

  if (code != TK_DONE) return code;
  if (optind == argc) return tk_usage("trigger", "list, add, remove, history or test is required");
  const struct word *word = find_word(argv[optind]);
  if (word == NULL)
    return tk_usage("trigger", "'%s' is not one of list, add, remove, history, test", argv[optind]);
  const struct tk_selector *s = &o.inputs.selector;
  if (word->act != test && (o.inputs.all || tk_selector_names_streams(s) || tk_selector_is_part(s)))
    return tk_usage("trigger", "%s: options that select streams are for test only", word->text);
  return word->act(&o, argv + optind + 1, argc - optind - 1);
}
