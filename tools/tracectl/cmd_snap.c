/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl snap: has flight recorders send what they keep, and prints how to fetch it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hex.h"
#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__SnapReply snap_reply;
typedef Tracecollect__V1__AgentSnap agent_snap;

enum { TIMEOUT_S = 10, TIMEOUT_S_MAX = 20 };

struct snap_args {
  struct tk_client_args client;
  struct tk_selector selector;
  uint64_t timeout_ns;
  bool json;
};

static bool is_shipped(const agent_snap *a) {
  return strcmp(a->state, "shipped") == 0;
}

static void add_row(struct tk_table *table, const agent_snap *a) {
  char size[TK_SIZE_BYTES], from[TC_TIME_BYTES], to[TC_TIME_BYTES];

  tk_table_add(table, "%s", a->state);
  tk_table_add(table, "%s", a->service);
  tk_table_add(table, "%s", a->instance);
  if (!is_shipped(a)) {
    for (int empty = 0; empty < 6; empty++) tk_table_add(table, "-");
    return;
  }
  tk_size_format(a->bytes, size);
  tc_time_format(a->from_wall_ns, from);
  tc_time_format(a->to_wall_ns, to);
  tk_table_add(table, "%" PRIu64 "..%" PRIu64, a->first_gen, a->last_gen);
  tk_table_add(table, "%" PRIu64, a->lost_generations);
  tk_table_add(table, "%" PRIu64, a->batches);
  tk_table_add(table, "%s", size);
  tk_table_add(table, "%s", from);
  tk_table_add(table, "%s", to);
}

static void print_fetch(const agent_snap *a) {
  char hex[2 * 16 + 1] = "";

  if (a->stream.len == 16) tb_hex(a->stream.data, 16, hex);
  printf("tracectl fetch --stream %s --gen %" PRIu64 "..%" PRIu64 " -o FILE\n", hex, a->first_gen,
         a->last_gen);
}

static void print_text(const snap_reply *reply) {
  struct tk_table table;

  tk_table_init(&table, "STATE,SERVICE,INSTANCE,>GENERATIONS,>LOST,>BATCHES,>SIZE,FROM,TO");
  for (size_t i = 0; i < reply->n_agents; i++) add_row(&table, reply->agents[i]);
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  for (size_t i = 0; i < reply->n_agents; i++)
    if (is_shipped(reply->agents[i])) print_fetch(reply->agents[i]);
}

static tb_rc print_json(const snap_reply *reply) {
  for (size_t i = 0; i < reply->n_agents; i++)
    if (!tk_json_print("snap", &reply->agents[i]->base)) return TB_NOMEM;
  return TB_OK;
}

static const char *advice(const agent_snap *a) {
  if (a->record_ns == 0)
    return "it sends records as they are made (record_ms, TRACEAGENT_RECORD_MS)";
  if (strcmp(a->state, "nothing") == 0) return "its trace ended before there was anything";
  return "what it keeps is sent when possible: see tracectl list";
}

static bool all_shipped(const snap_reply *reply) {
  bool all = true;

  for (size_t i = 0; i < reply->n_agents; i++) {
    const agent_snap *a = reply->agents[i];
    if (is_shipped(a)) continue;
    tk_fail("snap", "%s/%s: %s: %s", a->service, a->instance, a->state, advice(a));
    all = false;
  }
  return all;
}

static tb_rc ask(struct snap_args *args, struct tb_diag *diag, bool *out_all) {
  Tracecollect__V1__SnapRequest snap = TRACECOLLECT__V1__SNAP_REQUEST__INIT;
  Tracecollect__V1__Selector which;
  const snap_reply *reply;
  struct tk_client *client;

  TB_TRY(tk_remote_open(&args->client, &args->selector, diag, &client));
  tk_selector_message(&args->selector, &which);
  snap.service = which.service;
  snap.instance = which.instance;
  snap.stream = which.stream;
  snap.last_ns = args->selector.last_ns;
  snap.wait_ms = (uint32_t)((args->timeout_ns + 999999) / 1000000);
  tb_rc rc = tk_client_ask(client, TP_ROUTE_SNAP, "", &snap.base, diag, &reply);
  if (rc == TB_NOTFOUND) {
    const struct tb_diag why = *diag;
    tb_diag_clear(diag);
    rc = tb_fail(diag, rc, "%.190s", tk_remote_no_match(client, &args->selector, why.text));
  }
  if (rc == TB_OK && args->json)
    rc = print_json(reply);
  else if (rc == TB_OK)
    print_text(reply);
  if (rc == TB_OK) *out_all = all_shipped(reply);
  tk_client_close(client);
  return rc;
}

static tb_rc read_timeout(const struct tk_option *option, const char *value, void *field,
                          struct tb_diag *diag) {
  uint64_t *timeout_ns = field;

  TB_TRY(tk_read_span(option, value, field, diag));
  if (*timeout_ns != 0 && *timeout_ns <= TIMEOUT_S_MAX * UINT64_C(1000000000)) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "--timeout is at most %d s", TIMEOUT_S_MAX);
}

#define AT(member) offsetof(struct snap_args, member)
const struct tk_option tk_snap_options[] = {
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_OPTION(0, "last", "SPAN", tk_read_span, AT(selector.last_ns),
            "the newest 10s, 1m; without it all that they keep"),
  TK_OPTION(0, "timeout", "SPAN", read_timeout, AT(timeout_ns),
            "wait so long for them, at most 20s; default: 10s"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object an agent"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_snap(int argc, char **argv) {
  struct snap_args args = { .timeout_ns = TIMEOUT_S * UINT64_C(1000000000) };
  struct tb_diag diag;
  bool all = false;
  int code = tk_options_read_all(argc, argv, tk_snap_options, &args);

  if (code != TK_DONE) return code;
  if (args.selector.service == NULL && !args.selector.has_stream)
    return tk_usage("snap", "--service or --stream is required");
  tb_diag_clear(&diag);
  tb_rc rc = ask(&args, &diag, &all);
  if (rc != TB_OK) return tk_remote_fail("snap", rc, &diag);
  return all ? TK_DONE : TK_FAILED;
}
