/* SPDX-License-Identifier: Apache-2.0 */
/* Prints each table by a function of its own; the data is in .def files. */
#include "tools/tracectl/help/tables.h"

#include <inttypes.h>
#include <string.h>

#include "config/table.h"
#include "online/analysis/filter.h"
#include "online/event/view.h"
#include "proto/frame.h"
#include "proto/route.h"
#include "tls/role.h"
#include "tools/tracectl/help/verbs.h"
#include "wire/experiments.h"
#include "wire/spec.h"

static void row(struct tk_table *t, const char *const *cells) {
  for (size_t i = 0; i < t->columns; i++) tk_table_add(t, "%s", cells[i]);
}
#define ROW(table, ...) row(table, (const char *const[]){ __VA_ARGS__ })

static void fill_config(struct tk_table *t) {
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    char def[TC_VALUE_BYTES], min[TC_VALUE_BYTES], max[TC_VALUE_BYTES];

    tc_config_format(key->type, key->def, def);
    tc_config_format(key->type, key->min, min);
    tc_config_format(key->type, key->max, max);
    bool number =
        key->type == TC_TYPE_COUNT || key->type == TC_TYPE_BYTES || key->type == TC_TYPE_TIME;
    ROW(t, key->name, tc_config_type_name(key->type),
        tc_config_is_text(key->type) ? key->def_text : def, number ? min : "",
        number && key->max != 0 ? max : "", key->reloads ? "reload" : "start", key->text);
  }
}

static const char *kind_name(unsigned kind) {
  static const char *const names[] = {
    [TW_KIND_NONE] = "",         [TW_KIND_BATCH] = "batch",
    [TW_KIND_STRUCT] = "struct", [TW_KIND_STACK] = "stack",
    [TW_KIND_DATA] = "data",     [TW_KIND_CLOCK] = "clock",
    [TW_KIND_TIMED] = "timed",   [TW_KIND_EXPERIMENT] = "experiment",
  };

  return kind < sizeof names / sizeof names[0] ? names[kind] : "";
}

static void fill_events(struct tk_table *t) {
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    const struct tw_spec *spec = &tw_specs[type];
    char args[160] = "";

    if (spec->name == NULL) continue;
    if (tw_spec_has_dt(spec)) strcpy(args, "dt");
    for (unsigned i = 0; i < spec->nargs; i++) {
      size_t n = strlen(args);
      snprintf(args + n, sizeof args - n, "%s%s", n == 0 ? "" : ", ", spec->args[i].label);
    }
    tk_table_add(t, "%u", type);
    tk_table_add(t, "%s", spec->name);
    tk_table_add(t, "1.%u", spec->since);
    tk_table_add(t, "%s", kind_name(spec->kind));
    tk_table_add(t, "%s", args);
    tk_table_add(t, "%s", spec->opens != TW_EV_NONE ? tw_specs[spec->opens].name : "");
  }
}

static void fill_rules(struct tk_table *t) {
#define CTX(thread, proc, goroutine) #thread " " #proc " " #goroutine
#define RULE(event, always, ready, then, apply)                                                    \
  ROW(t, tw_specs[TW_EV_##event].name, always, #ready, then, #apply);
#include "online/order/rules.def"
#undef RULE
#undef CTX
}

/* Names of the events that end a range or, restated in each generation, continue it. */
static void name_followers(unsigned begin, bool active, char *out, size_t out_bytes) {
  *out = '\0';
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    const char *name = tw_specs[type].name;
    if (name == NULL || tw_specs[type].opens != begin) continue;
    if ((strstr(name, "Active") != NULL) != active) continue;
    size_t n = strlen(out);
    snprintf(out + n, out_bytes - n, "%s%s", n == 0 ? "" : ", ", name);
  }
}

static void fill_ranges(struct tk_table *t) {
  char ends[120], goes_on[120], since[16];

  for (unsigned kind = 0; kind < TO_RANGES; kind++) {
    const struct to_range_info *info = to_range_info((enum to_range_kind)kind);
    name_followers(info->begin, false, ends, sizeof ends);
    name_followers(info->begin, true, goes_on, sizeof goes_on);
    snprintf(since, sizeof since, "1.%u", tw_specs[info->begin].since);
    ROW(t, tw_specs[info->begin].name, ends, goes_on, info->id, to_resource_name(info->scope),
        to_resource_name(info->effect), since, info->about);
  }
}

static void fill_kinds(struct tk_table *t) {
  for (size_t i = 0; i < to_kinds_count; i++) {
    char names[512] = "";
    for (const uint8_t *type = to_kinds[i].types; *type != 0; type++) {
      size_t n = strlen(names);
      snprintf(names + n, sizeof names - n, "%s%s", n == 0 ? "" : ", ",
               *type == TW_OWN_EVENT_FIRST ? "(named by the trace)" : tw_spec(*type)->name);
    }
    ROW(t, to_kinds[i].name, to_kinds[i].about, names);
  }
}

static void fill_reasons(struct tk_table *t) {
  for (unsigned reason = TO_REASON_OTHER + 1; reason < TO_REASONS; reason++) {
    const struct to_reason_info *info = to_reason_info((enum to_reason)reason);
    char since[16];
    snprintf(since, sizeof since, info->since == 0 ? "-" : "1.%u", info->since);
    ROW(t, info->text, info->display, info->id, since, to_wait_class_name(info->wait_class),
        info->about);
  }
}

static void fill_idle(struct tk_table *t) {
#define TO_IDLE(reason, name, about) ROW(t, reason, name, about);
#include "online/spans/stacks/idle.def"
#undef TO_IDLE
}

static void fill_stw_reasons(struct tk_table *t) {
#define TO_STW_REASON(reason, id) ROW(t, reason, id);
#include "online/event/stw_reasons.def"
#undef TO_STW_REASON
}

static void fill_analyses(struct tk_table *t) {
#define TO_ANALYSIS(id, name, about) ROW(t, #name, about);
#include "online/analysis/analyses.def"
#undef TO_ANALYSIS
}

static void fill_metrics(struct tk_table *t) {
#define TC_METRIC(type, name, about)              ROW(t, "tracecollect_" #name, #type, about);
#define TC_STORE_METRIC(type, name, field, about) ROW(t, "tracecollect_" #name, #type, about);
#define TC_WAIT_METRIC(type, name, about)         ROW(t, "tracecollect_" #name, #type, about);
#include "config/metrics.def"
#undef TC_WAIT_METRIC
#undef TC_METRIC
#undef TC_STORE_METRIC
#define TC_PROCESS_METRIC(type, name, field, about) ROW(t, #name, #type, about);
#include "config/metrics_process.def"
#undef TC_PROCESS_METRIC
}

static void fill_results(struct tk_table *t) {
#define TB_RESULT(name, number, cls, text) ROW(t, #name, #number, #cls, text);
#include "base/result.def"
#undef TB_RESULT
}

static void fill_frames(struct tk_table *t) {
#define TP_ROW(name, number, record, from)                                                         \
  ROW(t, #number, #name, (record) ? "record" : "control", #from);
  TP_KINDS(TP_ROW)
#undef TP_ROW
}

static void path_of(const struct tp_route *route, char out[80]) {
  snprintf(out, 80, route->below != NULL ? "%s{%s}" : "%s", route->path, route->below);
}

static const char *param_type_name(const struct tp_param *p) {
  static const char *const names[] = {
    [TP_PARAM_TEXT] = "text", [TP_PARAM_FLAG] = "0 or 1", [TP_PARAM_NUMBER] = "number",
    [TP_PARAM_TIME] = "time", [TP_PARAM_SPAN] = "span",   [TP_PARAM_STREAM] = "stream id",
  };

  return p->type == TP_PARAM_WORD ? p->words : names[p->type];
}

static void put_number(struct tk_table *t, bool is_shown, uint64_t number) {
  char text[24] = "";

  if (is_shown) snprintf(text, sizeof text, "%" PRIu64, number);
  tk_table_add(t, "%s", text);
}

static void fill_params(struct tk_table *t) {
  for (size_t i = 0; i < tp_params_count; i++) {
    const struct tp_param *p = &tp_params[i];
    bool is_number = p->type == TP_PARAM_NUMBER;
    char path[80];

    path_of(&tp_routes[p->route], path);
    tk_table_add(t, "%s", path);
    tk_table_add(t, "%s", p->name);
    tk_table_add(t, "%s", param_type_name(p));
    put_number(t, is_number && p->byself >= p->min && p->byself <= p->max, p->byself);
    put_number(t, is_number, p->min);
    put_number(t, is_number && p->max < INT64_MAX, p->max);
    tk_table_add(t, "%s%s", p->about, p->is_needed ? " Required." : "");
  }
}

static void put_route(struct tk_table *t, const struct tp_route *route, enum tc_act act) {
  static const char *const kinds[] = {
    [TP_MESSAGE] = "",    [TP_LINES] = "JSON lines", [TP_JSON] = "JSON", [TP_TEXT] = "text",
    [TP_BYTES] = "bytes", [TP_EVENTS] = "events",    [TP_PAGE] = "page", [TP_EMPTY] = "nothing",
  };
  const char *message = route->answer != NULL ? strrchr(route->answer->name, '.') + 1 : "";

  char path[80], answer[80];
  const char *kind = kinds[route->kind];

  path_of(route, path);
  snprintf(answer, sizeof answer, "%s%s%s", kind, *kind != '\0' && *message != '\0' ? ", " : "",
           message);
  ROW(t, tp_method_name(route->method), path, tc_act_name(act), answer, route->about);
}

static void put_act(struct tk_table *t, enum tc_act act, const char *about) {
  char roles[100] = "";

  for (enum tc_role role = TC_ROLE_SERVER; role < TC_ROLES_ALL; role++) {
    size_t n = strlen(roles);
    if (tc_role_may(role, act))
      snprintf(roles + n, sizeof roles - n, "%s%s", n > 0 ? " " : "", tc_role_name(role));
  }
  ROW(t, tc_act_name(act), roles, about);
}

static void fill_routes(struct tk_table *t) {
#define TP_ROUTE(ID, METHOD, PATH, BELOW, ACT, KIND, ASK, ANSWER, ABOUT)                           \
  put_route(t, &tp_routes[TP_ROUTE_##ID], TC_ACT_##ACT);
#include "proto/routes.def"
#undef TP_ROUTE
}

static void fill_roles(struct tk_table *t) {
#define R(role)                        0
#define TC_ACT(ID, NAME, ROLES, ABOUT) put_act(t, TC_ACT_##ID, ABOUT);
#include "tls/role.def"
#undef TC_ACT
#undef R
}

static void fill_commands(struct tk_table *t) {
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
    ROW(t, v->name, tk_purpose_text(v->purpose), v->args, v->about);
}

const struct tk_table_of tk_tables[] = {
  { "analyses", "ANALYSIS,ABOUT", "What `tracectl report` finds.", fill_analyses },
  { "commands", "VERB,PURPOSE,ARGUMENTS,ABOUT", "The verbs of tracectl.", fill_commands },
  { "config", "KEY,TYPE,DEFAULT,>MIN,>MAX,APPLIES,ABOUT",
    "Every key of the collector's configuration.", fill_config },
  { "events", ">NUMBER,EVENT,SINCE,KIND,ARGUMENTS,OPENED BY", "Every event of the trace format.",
    fill_events },
  { "frames", ">KIND,NAME,CLASS,FROM", "What agent and collector say to each other.", fill_frames },
  { "idle", "REASON,FUNCTION,ABOUT", "Where waiting goroutines and system calls are idle.",
    fill_idle },
  { "kinds", "KIND,ABOUT,EVENTS", "Kinds of events that `tail --kind` and a lease ask for.",
    fill_kinds },
  { "metrics", "METRIC,TYPE,ABOUT", "What /metrics shows of the collector.", fill_metrics },
  { "params", "PATH,PARAMETER,TYPE,DEFAULT,>MIN,>MAX,ABOUT",
    "Query parameters of the collector's paths.", fill_params },
  { "ranges", "BEGINS,ENDS,RESTATED,ID,OWNER,AFFECTS,SINCE GO,ABOUT",
    "Every kind of range a trace may hold.", fill_ranges },
  { "reasons", "REASON,SHOWN AS,ID,SINCE GO,CLASS,ABOUT",
    "Why a goroutine stops running: GoBlock and GoStop.", fill_reasons },
  { "results", "RESULT,>CODE,CLASS,MEANING", "What a call or an answer can say.", fill_results },
  { "roles", "ACT,ROLES,ABOUT", "Who may do what of a collector.", fill_roles },
  { "routes", "METHOD,PATH,ACT,ANSWER,ABOUT", "What the collector answers over HTTP.",
    fill_routes },
  { "rules", "EVENT,ALWAYS M P G,READY,THEN M P G,APPLY",
    "How each event fits the scheduler's state.", fill_rules },
  { "stw-reasons", "REASON,ID",
    "Why the world stops, by Go's words (since Go 1.22) and in reports.", fill_stw_reasons },
};
const size_t tk_tables_count = sizeof tk_tables / sizeof tk_tables[0];
