/* SPDX-License-Identifier: Apache-2.0 */
/* Decides who may do what over HTTP: only here, after the head of a request and before its body is read.
 *
 * Checks of Host, Origin and Content-Type prevent a foreign web page from using the rights of the browser's user. A page
 * that uses DNS rebinding sends its own name in Host; a page of another site sends its own name in Origin, or first asks
 * with OPTIONS, which no path answers. Roles define what the peer itself may do (lib/tls/role.def). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "collector/http/page.h"
#include "collector/http/private.h"

static bool is_tls(const struct tc__http_conn *c) {
  return tc_tls_ssl(c->tls) != NULL;
}

static bool reads(const struct tc__http_conn *c) {
  return c->head.request.method == HTTP_GET || c->head.request.is_head;
}

/* After a refused request that would change something, the connection is closed: the body is not read. */
static const struct tp_route *refuse(struct tc__http_conn *c, int status, const char *why) {
  if (!reads(c)) c->ending = true;
  tc_metric_add(&c->http->env.metrics->http_refused_total, 1);
  tc__conn_fail(c, status, why);
  return NULL;
}

/* --- the peer ---------------------------------------------------------------------------------- */

static enum tc_role role_of(struct tc__http_conn *c, struct tb_diag *diag) {
  enum tc_role role;

  switch (c->door->kind) {
  case TC__DOOR_SOCKET: return TC_ROLE_SOCKET;
  case TC__DOOR_METRICS: return TC_ROLE_METRICS;
  default: break;
  }
  if (!is_tls(c)) return TC_ROLE_LOOPBACK;
  if (tc_tls_identity(tc_tls_ssl(c->tls), diag, &role, c->identity) == TB_OK) return role;
  return TC_ROLE_NOBODY;
}

static void identify_peer(struct tc__http_conn *c, struct tb_diag *diag) {
  c->role = role_of(c, diag);
  if (c->identity[0] != '\0') c->owner = tb_hash(TB_HASH_START, c->identity, strlen(c->identity));
}

bool tc__access_may(const struct tc__http_conn *c, enum tc_act act) {
  return tc_role_may(c->role, act) || (act == TC_ACT_METRICS && c->http->env.metrics_are_open);
}

/* nameless: the reason why the peer's certificate names no owner. */
static const struct tp_route *refuse_role(struct tc__http_conn *c, enum tc_act act,
                                          const char *nameless) {
  static const char by_socket_or_tls[] =
      "answered over the unix socket (listen.sock), or over TLS to a reader's certificate";
  static const char *const wanted[TC_ACTS] = {
    [TC_ACT_METRICS] = "a reader's certificate is needed, or http.metrics: open",
    [TC_ACT_READ] = "a reader's certificate is needed",
    [TC_ACT_LEASE] = by_socket_or_tls,
    [TC_ACT_SNAP] = by_socket_or_tls,
    [TC_ACT_VERIFY] = by_socket_or_tls,
    [TC_ACT_RULES] = "rules are changed over the unix socket (listen.sock) only",
    [TC_ACT_PUT_TRACE] = "an agent's certificate is needed, or the unix socket (listen.sock)",
  };
  char why[400];
  const char *words = wanted[act] != NULL ? wanted[act] : "this peer may not ask that";

  if (c->door->kind == TC__DOOR_METRICS)
    words = "this address has /metrics, /healthz and /readyz only";
  if (is_tls(c))
    snprintf(why, sizeof why, "%s; here: %s", words,
             c->identity[0] != '\0' ? c->identity : nameless);
  else
    snprintf(why, sizeof why, "%s", words);
  return refuse(c, 403, why);
}

/* --- the request ------------------------------------------------------------------------------- */

static bool is_address(const char *host) {
  unsigned char bytes[16];

  return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Accepts "name", "name:port", "[::1]:port". A request without Host is from an HTTP/1.0 client, which is not a browser. On
 * the metrics address any IP address is accepted, because scrapers may know only that; DNS rebinding needs a name. */
static bool host_is_ours(const struct tc__http_conn *c) {
  const struct tc_http *http = c->http;
  struct tb_hostport named;

  if (c->head.request.host[0] == '\0') return true;
  if (tb_host_parse(c->head.request.host, NULL, &named) != TB_OK) return false;
  for (unsigned i = 0; i < TC__DOORS; i++)
    if (strcasecmp(named.host, http->doors[i].where.host) == 0) return true;
  return tb_host_is_loopback(named.host) || tc_tls_context_has_name(http->ctx, named.host) ||
         (c->door->kind == TC__DOOR_METRICS && is_address(named.host));
}

/* Is Origin absent, or the site of this request? */
static bool origin_is_ours(const struct tc__http_conn *c) {
  const struct tc_http_request *r = &c->head.request;
  const char *scheme = is_tls(c) ? "https://" : "http://";
  size_t n = strlen(scheme);

  return r->origin[0] == '\0' ||
         (strncmp(r->origin, scheme, n) == 0 && strcasecmp(r->origin + n, r->host) == 0);
}

static bool is_of_this_site(const char *site) {
  return *site == '\0' || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

enum tc__body_type tc__body_type_of(const struct tc_http_request *r) {
  static const struct {
    const char *name;
    enum tc__body_type type;
  } types[] = { { "application/json", TC__BODY_JSON },
                { "application/protobuf", TC__BODY_PROTOBUF },
                { "application/x-protobuf", TC__BODY_PROTOBUF } };
  size_t n = strcspn(r->content_type, "; \t");

  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (n == strlen(types[i].name) && strncasecmp(r->content_type, types[i].name, n) == 0)
      return types[i].type;
  return TC__BODY_OTHER;
}

/* GET of a lease frees events, and GET of a job prevents its expiry: both change something, and HEAD is refused. */
static bool only_reads(const struct tp_route *route) {
  return route->method == TP_GET && route->id != TP_ROUTE_LEASE && route->id != TP_ROUTE_JOB;
}

/* Returns NULL if the request may not change anything. An HTML form cannot send these content types, and a script of
 * another site must first ask with OPTIONS. */
static const struct tp_route *check_change(struct tc__http_conn *c, const struct tp_route *route) {
  const struct tc_http_request *r = &c->head.request;

  if (!origin_is_ours(c))
    return refuse(
        c, 403,
        "Origin is another one than this request's own: a page elsewhere may change nothing");
  if (!is_of_this_site(r->sec_fetch_site))
    return refuse(c, 403, "Sec-Fetch-Site is another site: a page elsewhere may change nothing");
  if (route->method == TP_GET) return route;
  if (route->method != TP_DELETE && tc__body_type_of(r) == TC__BODY_OTHER)
    return refuse(c, 415, "Content-Type must be application/json or application/protobuf");
  if (*r->query != '\0') return refuse(c, 400, "only what is asked with GET has parameters");
  return route;
}

/* --- the route --------------------------------------------------------------------------------- */

/* Returns TP_METHODS for a method that no route has. */
static enum tp_method method_of(const struct tc_http_request *r) {
  switch ((int)r->method) {
  case HTTP_GET:
  case HTTP_HEAD: return TP_GET;
  case HTTP_POST: return TP_POST;
  case HTTP_PUT: return TP_PUT;
  case HTTP_DELETE: return TP_DELETE;
  default: return TP_METHODS;
  }
}

/* The route of the page's files matches every name below "/": a name without a file is not a path. */
static bool has_path(const struct tc__http_conn *c) {
  const char *path = c->head.request.path;
  unsigned unused;
  const struct tp_route *route = tp_route_find(TP_GET, path, &unused);

  return route == NULL || route->id != TP_ROUTE_PAGE || tc_page_find(path) != NULL;
}

static const struct tp_route *refuse_method(struct tc__http_conn *c) {
  struct tc__http_answer a;
  char list[64] = "";
  unsigned unused;

  for (unsigned i = 0; i < TP_METHODS; i++) {
    const struct tp_route *route = tp_route_find(i, c->head.request.path, &unused);
    size_t at = strlen(list);

    if (route == NULL) continue;
    snprintf(list + at, sizeof list - at, "%s%s%s", at > 0 ? ", " : "", tp_method_name(i),
             only_reads(route) ? ", HEAD" : "");
  }
  if (!reads(c)) c->ending = true;
  if (!has_path(c)) {
    tc__http_no_path(c);
    return NULL;
  }
  tc__answer_init(&a, NULL);
  tc__answer_fail(&a, 405, "this path answers %s", list);
  snprintf(a.fields, sizeof a.fields, "Allow: %s\r\n", list);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
  return NULL;
}

const struct tp_route *tc__access_check(struct tc__http_conn *c) {
  const struct tc_http_request *r = &c->head.request;
  struct tb_diag diag;
  unsigned allowed;
  const struct tp_route *route = tp_route_find(method_of(r), r->path, &allowed);

  tb_diag_clear(&diag);
  identify_peer(c, &diag);
  if (route == NULL || (r->is_head && !only_reads(route))) return refuse_method(c);
  c->route = route;
  enum tc_act act = tc__route_act(route);
  if (act != TC_ACT_STATE && !host_is_ours(c))
    return refuse(c, 421, "this host goes by another name");
  if (!tc__access_may(c, act)) return refuse_role(c, act, diag.text);
  return only_reads(route) ? route : check_change(c, route);
}
