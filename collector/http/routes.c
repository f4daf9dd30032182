/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that answer the routes of proto/routes.def. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "collector/http/page.h"
#include "collector/http/private.h"

/* Rows of one path with several methods are adjacent, so that each path is listed once. */
void tc__http_no_path(struct tc__http_conn *c) {
  char why[TC__WHY_BYTES] = "no such path; there are /";
  const char *before = "/";

  for (unsigned i = 0; i < TP_ROUTE_PAGE; i++) {
    const struct tp_route *route = &tp_routes[i];
    size_t at = strlen(why);

    if (strcmp(route->path, before) == 0) continue;
    before = route->path;
    if (route->below != NULL)
      snprintf(why + at, sizeof why - at, ", %s{%s}", route->path, route->below);
    else
      snprintf(why + at, sizeof why - at, ", %s", route->path);
  }
  tc__conn_fail(c, 404, why);
}

static void answer_healthz(struct tc__http_conn *c) {
  const struct tc_http_source *source = &c->http->env.source;
  const char *why = source->unhealthy(source->self);
  struct tc__http_answer a;

  tc__answer_init(&a, "text/plain; charset=utf-8");
  a.status = why == NULL ? 200 : 503;
  if (why != NULL && !tc__access_may(c, TC_ACT_REASONS)) why = "not well";
  tb_buf_printf(&a.body, "%s\n", why == NULL ? "ok" : why);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

static void answer_readyz(struct tc__http_conn *c) {
  const struct tc_http_source *source = &c->http->env.source;
  struct tc_readiness readiness;
  struct tc__http_answer a;

  source->readiness(source->self, &readiness);
  tc__answer_init(&a, "application/json");
  a.status = tc_readiness_is_ready(&readiness) ? 200 : 503;
  if (tc__access_may(c, TC_ACT_REASONS))
    tc_readiness_write(&readiness, &a.body);
  else
    tb_buf_printf(&a.body, "{\"ready\":%s}\n", a.status == 200 ? "true" : "false");
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

static const struct work {
  enum tc__http_lane_kind lane;
  void (*run)(struct tc__http_job *job, struct tc_query_session *session);
} works[TP_ROUTES] = {
  [TP_ROUTE_METRICS] = { TC__LANE_HEALTH, tc__api_metrics },
  [TP_ROUTE_STREAMS] = { TC__LANE_QUICK, tc__api_streams },
  [TP_ROUTE_SEGMENTS] = { TC__LANE_QUICK, tc__api_segments },
  [TP_ROUTE_REPORTS] = { TC__LANE_QUICK, tc__api_reports },
  [TP_ROUTE_REPORT] = { TC__LANE_QUICK, tc__api_report },
  [TP_ROUTE_SUMMARY] = { TC__LANE_QUICK, tc__api_summary },
  [TP_ROUTE_HISTORY] = { TC__LANE_QUICK, tc__api_history },
  [TP_ROUTE_FIRINGS] = { TC__LANE_QUICK, tc__api_firings },
  [TP_ROUTE_FINDINGS] = { TC__LANE_QUICK, tc__api_findings },
  [TP_ROUTE_FINDING_MUTE] = { TC__LANE_QUICK, tc__api_finding_mute },
  [TP_ROUTE_TRIGGERS] = { TC__LANE_QUICK, tc__api_triggers },
  [TP_ROUTE_TRIGGER_ADD] = { TC__LANE_QUICK, tc__api_trigger_add },
  [TP_ROUTE_TRIGGER_REMOVE] = { TC__LANE_QUICK, tc__api_trigger_remove },
  [TP_ROUTE_SNAP] = { TC__LANE_WAIT, tc__api_snap },
};

static void answer_by_worker(struct tc__http_conn *c) {
  static const char *const types[] = {
    [TP_MESSAGE] = "application/json",
    [TP_JSON] = "application/json",
    [TP_LINES] = "application/x-ndjson",
    [TP_TEXT] = "text/plain; version=0.0.4; charset=utf-8", /* metrics */
  };
  const struct work *work = &works[c->route->id];
  bool waits = work->lane == TC__LANE_QUICK && tc__asks_for_time(c);

  tc__conn_work(c, waits ? TC__LANE_WAIT : work->lane, types[c->route->kind], work->run);
}

/* Files of pages whose path names a stream or a service. NULL: the path names the file. */
static const char *const pages[TP_ROUTES] = {
  [TP_ROUTE_PAGE_SERVICE] = "/service.html",
  [TP_ROUTE_PAGE_TIMELINE] = "/timeline.html",
  [TP_ROUTE_PAGE_ARCHIVE] = "/archive.html",
  [TP_ROUTE_PAGE_WHY] = "/why.html",
};

static void answer_page(struct tc__http_conn *c) {
  const char *page = pages[c->route->id];
  const struct tc_page_file *file = tc_page_find(page != NULL ? page : c->head.request.path);
  struct tc__http_answer a;

  if (file == NULL) {
    tc__http_no_path(c);
    return;
  }
  tc__answer_init(&a, file->type);
  a.caching = "no-cache"; /* requested again each time, and mostly answered 304 */
  a.policy = TC_PAGE_POLICY;
  strcpy(a.tag, file->tag);
  tb_buf_add(&a.body, file->bytes, file->len);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

/* NULL: answer_by_worker() answers. */
static void (*const answers[TP_ROUTES])(struct tc__http_conn *c) = {
  [TP_ROUTE_HEALTHZ] = answer_healthz,
  [TP_ROUTE_READYZ] = answer_readyz,
  [TP_ROUTE_SEGMENT] = tc__http_file_begin,
  [TP_ROUTE_VERIFY] = tc__verify_begin,
  [TP_ROUTE_JOB] = tc__job_poll,
  [TP_ROUTE_JOB_END] = tc__job_end,
  [TP_ROUTE_LEASE_OPEN] = tc__lease_open,
  [TP_ROUTE_LEASE] = tc__lease_next,
  [TP_ROUTE_LEASE_END] = tc__lease_release,
  [TP_ROUTE_SPANS] = tc__timeline_begin,
  [TP_ROUTE_SPAN] = tc__timeline_begin,
  [TP_ROUTE_STATE] = tc__timeline_begin,
  [TP_ROUTE_STRETCH] = tc__timeline_begin,
  [TP_ROUTE_WHY] = tc__timeline_begin,
  [TP_ROUTE_LIVE] = tc__live_begin,
  [TP_ROUTE_PAGE_SERVICE] = answer_page,
  [TP_ROUTE_PAGE_TIMELINE] = answer_page,
  [TP_ROUTE_PAGE_ARCHIVE] = answer_page,
  [TP_ROUTE_PAGE_WHY] = answer_page,
  [TP_ROUTE_PAGE] = answer_page,
};

#define TP_ROUTE(ID, METHOD, PATH, BELOW, ACT, ...) [TP_ROUTE_##ID] = TC_ACT_##ACT,
static const enum tc_act acts[TP_ROUTES] = {
#include "proto/routes.def"
};
#undef TP_ROUTE

enum tc_act tc__route_act(const struct tp_route *route) {
  return acts[route->id];
}

/* Does a request count for owner_questions_max? */
static bool is_question(const struct tp_route *route) {
  enum tc_act act = tc__route_act(route);

  return act != TC_ACT_STATE && act != TC_ACT_REASONS && act != TC_ACT_METRICS &&
         route->kind != TP_EVENTS;
}

static bool has_place(struct tc__http_conn *c) {
  if (c->route->id == TP_ROUTE_LEASE) return tc__place_may_wait(c);
  return !is_question(c->route) || tc__place_may_ask(c);
}

void tc__http_dispatch(struct tc__http_conn *c) {
  const struct tp_route *route = tc__access_check(c);

  if (route == NULL || !has_place(c)) return;
  if (c->body_left > 0)
    tc__body_begin(c);
  else
    tc__http_answer(c);
}

void tc__http_answer(struct tc__http_conn *c) {
  if (answers[c->route->id] != NULL)
    answers[c->route->id](c);
  else
    answer_by_worker(c);
}
