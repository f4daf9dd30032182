/* SPDX-License-Identifier: Apache-2.0 */
/* The paths, as a table. */
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "collector/http/page.h"
#include "collector/http/private.h"

static void answer_healthz(struct tc__http_conn *c) {
  const struct tc_http_source *source = &c->http->env.source;
  const char *why = source->unhealthy(source->self);
  struct tc__http_answer a;

  tc__answer_init(&a, "text/plain; charset=utf-8");
  a.status = why == NULL ? 200 : 503;
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
  tc_readiness_write(&readiness, &a.body);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

static void answer_metrics(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_HEALTH, "text/plain; version=0.0.4; charset=utf-8", tc__api_metrics);
}

static void answer_streams(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/json", tc__api_streams);
}

static void answer_segments(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/json", tc__api_segments);
}

static void answer_firings(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/json", tc__api_firings);
}

static void answer_triggers(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/json", tc__api_triggers);
}

static void answer_report(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/x-ndjson", tc__api_report);
}

static void answer_history(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/x-ndjson", tc__api_history);
}

static void answer_reports(struct tc__http_conn *c) {
  tc__conn_work(c, TC__LANE_QUICK, "application/json", tc__api_reports);
}

static void answer_file(struct tc__http_conn *c, const char *path) {
  const struct tc_page_file *file = tc_page_find(path);
  struct tc__http_answer a;

  if (file == NULL) {
    tc__conn_fail(c, 404, "no such page; docs/HTTP.md lists those there are");
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

static void answer_page(struct tc__http_conn *c) {
  answer_file(c, c->head.request.path);
}

/* Of any stream: the page asks for it. */
static void answer_timeline(struct tc__http_conn *c) {
  answer_file(c, "/timeline.html");
}

static void answer_archive(struct tc__http_conn *c) {
  answer_file(c, "/archive.html");
}

/* Of any stream: the page asks for it. */
static void answer_why(struct tc__http_conn *c) {
  answer_file(c, "/why.html");
}

/* Of any service: the page asks for it. */
static void answer_service(struct tc__http_conn *c) {
  answer_file(c, "/service.html");
}

static const struct route {
  const char *path;
  bool below;        /* path is where the paths begin */
  bool for_everyone; /* over TLS without a reader certificate too */
  enum { HEALTH, QUESTION, LIVE } kind;
  void (*answer)(struct tc__http_conn *c);
} routes[] = {
  { "/healthz", false, true, HEALTH, answer_healthz },
  { "/readyz", false, false, HEALTH, answer_readyz },
  { "/metrics", false, false, HEALTH, answer_metrics },
  { "/api/v1/streams", false, false, QUESTION, answer_streams },
  { "/api/v1/segments", false, false, QUESTION, answer_segments },
  { "/api/v1/segments/", true, false, QUESTION, tc__http_file_begin },
  { "/api/v1/report/", true, false, QUESTION, answer_report },
  { "/api/v1/reports", false, false, QUESTION, answer_reports },
  { "/api/v1/history/", true, false, QUESTION, answer_history },
  { "/api/v1/firings", false, false, QUESTION, answer_firings },
  { "/api/v1/triggers", false, false, QUESTION, answer_triggers },
  { "/api/v1/spans", false, false, QUESTION, tc__timeline_begin },
  { "/api/v1/span", false, false, QUESTION, tc__moment_begin },
  { "/api/v1/state", false, false, QUESTION, tc__state_begin },
  { "/api/v1/stretch/", true, false, QUESTION, tc__stretch_begin },
  { "/api/v1/why", false, false, QUESTION, tc__why_begin },
  { "/api/v1/live", false, false, LIVE, tc__live_begin },
  { "/service/", true, false, QUESTION, answer_service },
  { "/timeline/", true, false, QUESTION, answer_timeline },
  { "/archive", false, false, QUESTION, answer_archive },
  { "/why/", true, false, QUESTION, answer_why },
  { "/", true, false, QUESTION, answer_page },
};

/* "name", "name:port", "[::1]:port", and nothing behind it: the name must be one of this host's, or the configured one. */
static bool host_is_ours(const struct tc__http_conn *c) {
  struct tb_hostport named;

  return tb_host_parse(c->head.request.host, NULL, &named) == TB_OK &&
         (tb_host_is_loopback(named.host) || strcasecmp(named.host, c->http->where.host) == 0);
}

void tc__http_dispatch(struct tc__http_conn *c) {
  const char *path = c->head.request.path;
  const struct route *route = routes;
  char identity[TC_IDENTITY_BYTES + 1];
  struct tb_diag diag;

  /* An HTTP/1.0 client names no host: it is no browser either. */
  if (c->http->ctx == NULL && c->head.request.host[0] != '\0' && !host_is_ours(c)) {
    tc__conn_fail(c, 421, "this host goes by another name");
    return;
  }
  while (route->below ? strncmp(route->path, path, strlen(route->path)) != 0
                      : strcmp(route->path, path) != 0)
    route++; /* the last one fits all */
  tb_diag_clear(&diag);
  bool known = c->http->ctx != NULL &&
               tc_tls_identity(tc_tls_ssl(c->tls), "reader", &diag, identity) == TB_OK;
  if (known) c->owner = tb_hash(TB_HASH_START, identity, strlen(identity));
  if (!known && !route->for_everyone && c->http->ctx != NULL)
    tc__conn_fail(c, 403, diag.text);
  else if (route->kind != QUESTION || tc__place_may_ask(c))
    route->answer(c);
}
