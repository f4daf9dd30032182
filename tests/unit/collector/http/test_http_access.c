/* SPDX-License-Identifier: Apache-2.0 */
/* Access rules: each route through each listener in each role, and what a page from elsewhere may make a browser do. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/lease/broker.h"
#include "proto/route.h"
#include "support/archive_host.h"
#include "support/http_server.h"
#include "support/peer.h"
#include "tls/role.h"

enum who { LOOPBACK, SOCKET, METRICS, NOBODY, AGENT, READER, SERVER, WHOS };

static struct tt_host host;
static struct tc_leases *leases;
static struct tt_http *plain, *tls;
static char answer[TT_HTTP_ANSWER_BYTES];

/* A loop that acknowledges each lease at once. */
static bool take_order(void *self, unsigned loop, struct tc_event_tap_order *order) {
  struct tc_bundle *known = tc_bundle_new(order->lease, 0);

  (void)self;
  known->ready = true;
  if (order->remove || !tc_leases_post(leases, loop, known)) tc_bundle_free(known);
  tc_event_tap_order_free(order);
  return true;
}

static void open_all(void) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tt_host_open(&host, 1);
  const struct tc_leases_env env = { &host.store.config, 1, NULL, take_order, NULL };
  cr_assert_eq(tc_leases_new(&env, &diag, &leases), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_leases_start(leases, &diag), TB_OK, "%s", diag.text);
  plain = tt_http_start_with("127.0.0.1:0", NULL, host.query, leases);
  tls = tt_http_start_with("0.0.0.0:0", NULL, host.query, leases);
}

static void close_all(void) {
  tc_leases_stop(leases);
  tt_http_stop(tls);
  tt_http_stop(plain);
  tc_leases_free(leases);
  tt_host_close(&host);
}

TestSuite(http_access, .init = open_all, .fini = close_all);

/* --- asking ------------------------------------------------------------------------------------ */

static int dial(enum who who) {
  switch (who) {
  case SOCKET: return tt_http_dial_path(plain);
  case METRICS: return tt_http_dial_metrics(plain);
  default: return tt_http_dial(plain);
  }
}

/* Reads the answer up to `until`, or to the end of the connection. */
static void hear_over_tls(const char *name, const char *text, const char *until) {
  char address[64];
  struct tt_peer_terms terms = { .address = address, .ca_dir = tls->host.dir, .name = name };
  struct tt_peer peer;
  size_t len = 0, n;

  snprintf(address, sizeof address, "127.0.0.1:%u", tls->port);
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  cr_assert(tt_peer_send(&peer, text, strlen(text)), "%s", peer.why);
  answer[0] = '\0';
  while ((until == NULL || strstr(answer, until) == NULL) &&
         SSL_read_ex(peer.ssl, answer + len, sizeof answer - 1 - len, &n) == 1)
    answer[len += n] = '\0';
  tt_peer_close(&peer);
}

static int status_of(enum who who, const char *text, const char *until) {
  static const char *const names[WHOS] = {
    [AGENT] = "agent", [READER] = "reader", [SERVER] = "server"
  };
  int status = 0;

  if (who >= NOBODY) {
    hear_over_tls(names[who], text, until);
  } else {
    int fd = dial(who);

    tt_http_say(fd, text, strlen(text));
    tt_http_hear(fd, answer, until);
    close(fd);
  }
  cr_assert_eq(sscanf(answer, "HTTP/1.1 %d ", &status), 1, "%s\n%s", text, answer);
  return status;
}

/* Each of the fields ends with CR LF. A POST has no body, and says that it is JSON. */
static int ask(enum who who, const char *method, const char *path, const char *named,
               const char *fields) {
  char text[2000];

  snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", method, path, named,
           strcmp(method, "POST") == 0 ? "Content-Type: application/json\r\n" : "", fields);
  return status_of(who, text, "\r\n\r\n");
}

/* --- roles ------------------------------------------------------------------------------------- */

/* The rules of docs/HTTP.md, written out here and not derived from the table that they are compared with. */
static bool may(enum who who, enum tc_act act) {
  static const char *const acts[TC_ACTS] = {
    /*                       LOOPBACK SOCKET METRICS NOBODY AGENT READER SERVER */
    [TC_ACT_STATE] = "xxxxxxx", [TC_ACT_METRICS] = "xxx..x.",   [TC_ACT_READ] = "xx...x.",
    [TC_ACT_LEASE] = ".x...x.", [TC_ACT_SNAP] = ".x...x.",      [TC_ACT_VERIFY] = ".x...x.",
    [TC_ACT_RULES] = ".x.....", [TC_ACT_PUT_TRACE] = ".x..x..",
  };

  cr_assert_not_null(acts[act], "%s", tc_act_name(act));
  return acts[act][who] == 'x';
}

static enum tc_act act_of(enum tp_route_id id) {
  static const enum tc_act acts[TP_ROUTES] = {
#define TP_ROUTE(ID, METHOD, PATH, BELOW, ACT, ...) [TP_ROUTE_##ID] = TC_ACT_##ACT,
#include "proto/routes.def"
#undef TP_ROUTE
  };

  return acts[id];
}

Test(http_access, each_route_is_answered_to_whom_it_is_for) {
  char path[200];

  for (unsigned i = 0; i < TP_ROUTES; i++) {
    const struct tp_route *route = &tp_routes[i];

    snprintf(path, sizeof path, "%s%s", route->path, route->below != NULL ? "0" : "");
    for (enum who who = 0; who < WHOS; who++) {
      int status = ask(who, tp_method_name(route->method), path, "localhost", "");
      bool refused = status == 403 || status == 405 || status == 415 || status == 421;

      cr_expect_eq(!refused, may(who, act_of(i)), "%s %s by %u: %d", tp_method_name(route->method),
                   path, who, status);
      if (refused) cr_expect_eq(status, 403, "%s by %u", path, who);
    }
  }
}

Test(http_access, a_refusal_says_what_would_do) {
  static const struct {
    enum who who;
    const char *method, *path, *words;
  } rows[] = {
    { LOOPBACK, "POST", "/api/v1/snaps",
      "over the unix socket (listen.sock), or over TLS to a reader's" },
    { LOOPBACK, "POST", "/api/v1/triggers",
      "rules are changed over the unix socket (listen.sock) only" },
    { READER, "POST", "/api/v1/triggers",
      "rules are changed over the unix socket (listen.sock) only; here: tracecollect:reader/test" },
    { NOBODY, "GET", "/api/v1/streams", "a reader's certificate is needed; here: no certificate" },
    { AGENT, "GET", "/api/v1/streams", "certificate is needed; here: tracecollect:agent/test" },
    { NOBODY, "GET", "/metrics", "a reader's certificate is needed, or http.metrics: open" },
    { METRICS, "GET", "/", "this address has /metrics, /healthz and /readyz only" },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[300];

    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: "
             "close\r\n\r\n",
             rows[i].method, rows[i].path);
    cr_expect_eq(status_of(rows[i].who, text, NULL), 403);
    cr_expect_not_null(strstr(answer, rows[i].words), "%s\n%s", rows[i].words, answer);
  }
}

Test(http_access, metrics_may_be_open_to_everybody_and_nothing_else_is) {
  tt_http_metrics_are_open = true;
  struct tt_http *reader_only = tls;
  tls = tt_http_start("0.0.0.0:0", NULL, host.query);
  cr_expect_eq(ask(NOBODY, "GET", "/metrics", "localhost", ""), 200);
  cr_expect_eq(ask(AGENT, "GET", "/metrics", "localhost", ""), 200);
  cr_expect_eq(ask(NOBODY, "GET", "/api/v1/streams", "localhost", ""), 403);
  tt_http_stop(tls);
  tls = reader_only;
}

Test(http_access, who_has_no_certificate_hears_the_state_without_its_reasons) {
  static const char health[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  static const char ready[] = "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

  tls->unhealthy = plain->unhealthy = "disk full";
  for (enum who who = NOBODY; who < WHOS; who++) { /* compares the end of each answer */
    cr_expect_eq(status_of(who, health, NULL), 503);
    cr_expect_not_null(strstr(answer, who == READER ? "\r\n\r\ndisk full\n" : "\r\n\r\nnot well\n"),
                       "%u: %s", who, answer);
    cr_expect_eq(status_of(who, ready, NULL), 503);
    cr_expect_eq(strstr(answer, "\r\n\r\n{\"ready\":false}\n") == NULL, who == READER, "%u: %s",
                 who, answer);
  }
  tt_http_ask_at(dial(METRICS), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 1000, answer);
  cr_expect_null(strstr(answer, "disk full"), "%s", answer);
  tt_http_ask_at(dial(SOCKET), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 1000, answer);
  cr_expect_not_null(strstr(answer, "disk full"), "%s", answer);
}

Test(http_access, a_path_says_which_methods_it_has) {
  static const struct {
    const char *method, *path, *allow;
  } rows[] = {
    { "POST", "/metrics", "GET, HEAD" },
    { "DELETE", "/api/v1/triggers", "GET, HEAD, POST" },
    { "PUT", "/api/v1/triggers", "GET, HEAD, POST" },
    { "OPTIONS", "/api/v1/triggers", "GET, HEAD, POST" },
    { "GET", "/api/v1/snaps", "POST" },
    { "HEAD", "/api/v1/leases/1", "GET, DELETE" },
    { "POST", "/api/v1/leases/1", "GET, DELETE" },
    { "PATCH", "/", "GET, HEAD" },
    { "TRACE", "/", "GET, HEAD" },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char allow[100];

    cr_expect_eq(ask(SOCKET, rows[i].method, rows[i].path, "localhost", ""), 405, "%s %s",
                 rows[i].method, rows[i].path);
    snprintf(allow, sizeof allow, "\r\nAllow: %s\r\n", rows[i].allow);
    cr_expect_not_null(strstr(answer, allow), "%s\n%s", allow, answer);
  }
}

Test(http_access, a_path_that_is_not_there_is_404_and_names_those_that_are) {
  static const char *const methods[] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"
  };
  static const char *const paths[] = { "/nosuch", "/api/v1/stream", "/api/v2/streams", "/metrics/",
                                       "/index.htm" };
  char named[100];

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
    for (size_t k = 0; k < sizeof methods / sizeof methods[0]; k++) {
      cr_expect_eq(ask(SOCKET, methods[k], paths[i], "localhost", "Connection: close\r\n"), 404,
                   "%s %s", methods[k], paths[i]);
      cr_expect_null(strstr(answer, "\r\nAllow:"), "%s", answer);
    }
  status_of(SOCKET, "POST /nosuch HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL);
  for (unsigned i = 0; i < TP_ROUTE_PAGE; i++) {
    const char *below = tp_routes[i].below;

    snprintf(named, sizeof named, below != NULL ? "%s{%s}" : "%s", tp_routes[i].path, below);
    cr_expect_not_null(strstr(answer, named), "%s\n%s", named, answer);
  }
  cr_expect_not_null(strstr(answer, "/why/{stream}\"}\n"), "it is not cut: %s", answer);
  /* The path exists, as a file of the page. */
  cr_expect_eq(ask(SOCKET, "POST", "/index.html", "localhost", ""), 405);
}

/* --- browsers ---------------------------------------------------------------------------------- */

Test(http_access, a_host_that_is_not_ours) {
  static const char *const ours[] = {
    "localhost", "LOCALHOST:1", "127.0.0.1",       "127.1.2.3:7073",  "[::1]",
    "[::1]:1",   "localhost:0", "127.0.0.1:65535", "collector.test:1" /* of the certificate */
  };
  static const char *const others[] = {
    "evil.example",
    "localhost.evil.example",
    "localhost.",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "127.0.0.1.nip.io",
    "[::1].evil.com",
    "localhost:7.evil",
    "localhost:65536",
    "[::ffff:7f00:1]",
    "::1",
    "a@localhost",
    "localhost,evil",
    "localhost evil",
    "10.0.0.1",
    "[::]",
    "%6cocalhost",
    "localhost:",
    "*",
  };

  for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
    cr_expect_eq(ask(LOOPBACK, "GET", "/archive", ours[i], ""), 200, "%s", ours[i]);
    cr_expect_eq(ask(SOCKET, "GET", "/archive", ours[i], ""), 200, "%s", ours[i]);
    cr_expect_eq(ask(READER, "GET", "/archive", ours[i], ""), 200, "%s", ours[i]);
    cr_expect_eq(ask(METRICS, "GET", "/metrics", ours[i], ""), 200, "%s", ours[i]);
  }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    cr_expect_eq(ask(LOOPBACK, "GET", "/archive", others[i], ""), 421, "%s", others[i]);
    cr_expect_eq(ask(SOCKET, "POST", "/api/v1/triggers", others[i], ""), 421, "%s", others[i]);
    cr_expect_eq(ask(READER, "GET", "/archive", others[i], ""), 421, "%s", others[i]);
    cr_expect_eq(ask(NOBODY, "GET", "/healthz", others[i], ""), 200, "%s", others[i]);
    cr_expect_eq(ask(LOOPBACK, "GET", "/readyz", others[i], ""), 200, "%s", others[i]);
  }
  /* The name in listen.http, which only one of the two collectors has. */
  cr_expect_eq(ask(READER, "GET", "/archive", "0.0.0.0:7073", ""), 200);
  cr_expect_eq(ask(LOOPBACK, "GET", "/archive", "0.0.0.0:7073", ""), 421);
  /* A scraper that uses an address has no name for this host. */
  cr_expect_eq(ask(METRICS, "GET", "/metrics", "10.1.2.3:9090", ""), 200);
  cr_expect_eq(ask(METRICS, "GET", "/metrics", "evil.example", ""), 421);
  cr_expect_gt(atomic_load(&plain->metrics.http_refused_total), 0);
  cr_expect_geq(atomic_load(&plain->metrics.http_client_errors_total),
                atomic_load(&plain->metrics.http_refused_total));
}

/* Writes the fields: '@' becomes the scheme of this listener, '#' the other scheme. */
static void write_fields(char *out, const char *fields, bool over_tls) {
  static const char *const schemes[] = { "http", "https" };

  for (; *fields != '\0'; fields++)
    if (*fields == '@' || *fields == '#')
      out = stpcpy(out, schemes[(*fields == '@') == over_tls]);
    else
      *out++ = *fields;
  *out = '\0';
}

/* Sends the request with a body and without one, and expects this status; 0: it must be allowed. */
static void expect_change(enum who who, const struct tp_route *route, int status,
                          const char *fields) {
  char path[200], more[300];

  snprintf(path, sizeof path, "%s%s", route->path, route->below != NULL ? "0" : "");
  for (unsigned bytes = 0; bytes < 3; bytes += 2) {
    char text[1000];

    if (bytes > 0 && route->method != TP_POST) continue;
    write_fields(more, fields, who >= NOBODY);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost:7073\r\nContent-Type: application/json\r\n"
             "%sContent-Length: %u\r\n\r\n%.*s",
             tp_method_name(route->method), path, more, bytes, (int)bytes, "{}");
    int said = status_of(who, text, "\r\n\r\n");
    if (status == 0)
      cr_expect(said != 403 && said != 415 && said != 421, "%s: %d", text, said);
    else
      cr_expect_eq(said, status, "%s: %d", text, said);
  }
}

/* Returns whether the route changes nothing; reading a lease does, since it acknowledges events. */
static bool only_reads(const struct tp_route *route) {
  return route->method == TP_GET && route->id != TP_ROUTE_LEASE && route->id != TP_ROUTE_JOB;
}

/* Tries every route that changes something, in every role that may use it. */
static void expect_changes(int status, const char *fields) {
  for (unsigned i = 0; i < TP_ROUTES; i++) {
    if (only_reads(&tp_routes[i])) continue;
    expect_change(SOCKET, &tp_routes[i], status, fields);
    if (may(READER, act_of(i))) expect_change(READER, &tp_routes[i], status, fields);
  }
}

Test(http_access, a_page_elsewhere_changes_nothing) {
  static const char *const others[] = {
    "Origin: @://evil.example\r\n",
    "Origin: null\r\n",
    "Origin: @://localhost:8000\r\n",
    "Origin: @://localhost\r\n",
    "Origin: #://localhost:7073\r\n",
    "Origin: @://localhost:7073/\r\n",
    "Origin: @://localhost:7073 @://evil.example\r\n",
    "Origin: @://127.0.0.1:7073\r\n",
    "Origin: HTTP://localhost:7073\r\n",
    "Sec-Fetch-Site: cross-site\r\n",
    "Sec-Fetch-Site: same-site\r\n",
    "Origin: @://localhost:7073\r\nSec-Fetch-Site: cross-site\r\n",
  };

  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) expect_changes(403, others[i]);
  cr_expect_eq(atomic_load(&tc_leases_metrics(leases)->leases_opened_total), 0);
  cr_expect_eq(atomic_load(&plain->metrics.http_refused_total),
               atomic_load(&plain->metrics.http_client_errors_total));
  /* Reading needs no check here: no answer allows another origin to see it. */
  cr_expect_eq(ask(LOOPBACK, "GET", "/archive", "localhost", "Origin: http://evil.example\r\n"),
               200);
  cr_expect_null(strstr(answer, "Access-Control"), "%s", answer);
  cr_expect_not_null(strstr(answer, "Cross-Origin-Resource-Policy: same-origin"), "%s", answer);
}

Test(http_access, our_own_page_and_what_is_no_browser_may) {
  expect_changes(0, "Origin: @://localhost:7073\r\n");
  expect_changes(0, "Origin: @://LOCALHOST:7073\r\nSec-Fetch-Site: same-origin\r\n");
  expect_changes(0, "Sec-Fetch-Site: none\r\n");
  expect_changes(0, "");
  cr_expect_gt(atomic_load(&tc_leases_metrics(leases)->leases_opened_total), 0);
}

/* With a body and without one, for every route that takes one. */
Test(http_access, what_a_form_can_send_is_not_read) {
  static const char *const types[] = { "text/plain",
                                       "application/x-www-form-urlencoded",
                                       "multipart/form-data; boundary=x",
                                       "text/plain; application/json",
                                       "application/jsonx",
                                       "application",
                                       "" };
  char text[400];

  for (unsigned i = 0; i < TP_ROUTES; i++)
    for (size_t k = 0; k < 2 * sizeof types / sizeof types[0]; k++) {
      const char *type = types[k / 2];

      if (tp_routes[i].method != TP_POST) continue;
      snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s",
               tp_routes[i].path, type[0] != '\0' ? "Content-Type: " : "X: ", type,
               k % 2 == 0 ? "\r\n" : "Content-Length: 2\r\n\r\n{}");
      cr_expect_eq(status_of(SOCKET, text, NULL), 415, "%s", text);
      cr_expect_not_null(strstr(answer, "Connection: close"), "%s", answer);
    }
}

/* --- what one owner has -------------------------------------------------------------------------- */

/* Begins a job or a lease over the socket of the server that also speaks TLS. Returns the path from the Location field. */
static const char *begin_by_socket(const char *path) {
  static char location[100];
  char text[300];

  snprintf(text, sizeof text,
           "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n", path);
  tt_http_ask_at(tt_http_dial_path(tls), text, 1000, answer);
  const char *said = strstr(answer, "\r\nLocation: ");
  cr_assert_not_null(said, "%s", answer);
  snprintf(location, sizeof location, "%.*s", (int)strcspn(said + 12, "\r"), said + 12);
  return location;
}

Test(http_access, a_job_and_a_lease_are_their_owners) {
  static const char *const paths[] = { "/api/v1/verify", "/api/v1/leases" };

  for (size_t i = 0; i < 2; i++) {
    const char *location = begin_by_socket(paths[i]);

    char text[300];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             location);
    cr_expect_eq(status_of(READER, text, NULL), 403);
    cr_expect_not_null(strstr(answer, "another reader"), "%s", answer);
    cr_expect_eq(ask(READER, "DELETE", location, "localhost", ""), 403);
    cr_expect_eq(ask(AGENT, "DELETE", location, "localhost", ""), 403);
    snprintf(text, sizeof text, "DELETE %s HTTP/1.1\r\nHost: localhost\r\n\r\n", location);
    tt_http_ask_at(tt_http_dial_path(tls), text, 1000, answer);
    cr_expect_not_null(strstr(answer, "HTTP/1.1 204"), "%s", answer);
  }
  cr_expect_eq(atomic_load(&tls->metrics.http_client_errors_total), 6);
}

/* --- what is cut ------------------------------------------------------------------------------- */

/* A request that is cut anywhere changes nothing. Tries every route that changes something, cut at each byte. */
Test(http_access, a_change_cut_at_every_byte_is_none) {
  static const struct {
    enum tp_route_id route;
    const char *path, *body;
  } changes[] = {
    { TP_ROUTE_TRIGGER_ADD, "/api/v1/triggers", "{\"add\":\"slow WHEN finding leak DO keep\"}" },
    { TP_ROUTE_FINDING_MUTE, "/api/v1/findings",
      "{\"id\":\"9d1c02b7f3a8e455\",\"for_ns\":1,\"reason\":\"known\"}" },
    { TP_ROUTE_TRIGGER_REMOVE, "/api/v1/triggers/kept", NULL },
    { TP_ROUTE_SNAP, "/api/v1/snaps", "{\"service\":\"shop\"}" },
    { TP_ROUTE_VERIFY, "/api/v1/verify", "{}" },
    { TP_ROUTE_JOB_END, "/api/v1/jobs/0000000000000001", NULL },
    { TP_ROUTE_LEASE_OPEN, "/api/v1/leases", "{\"filter\":{\"service\":\"shop\"}}" },
    { TP_ROUTE_LEASE_END, "/api/v1/leases/0000000000000001", NULL },
  };
  unsigned routes = 0, n = sizeof changes / sizeof changes[0];
  char text[600];

  for (unsigned i = 0; i < TP_ROUTES; i++) routes += tp_routes[i].method != TP_GET;
  cr_assert_eq(routes, n, "each has a row");
  for (unsigned i = 0; i < n; i++) {
    const char *body = changes[i].body != NULL ? changes[i].body : "";
    int whole = snprintf(text, sizeof text,
                         "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                         tp_method_name(tp_routes[changes[i].route].method), changes[i].path,
                         strlen(body), body);

    for (int cut = 1; cut < whole; cut++) {
      int fd = dial(SOCKET);

      tt_http_say(fd, text, (size_t)cut);
      shutdown(fd, SHUT_WR);
      tt_http_hear(fd, answer, NULL); /* the server ends it, before the time-out */
      cr_expect_str_eq(answer, "", "%.*s", cut, text);
      close(fd);
    }
  }
  cr_expect_eq(atomic_load(&plain->metrics.http_requests_total), 0);
  cr_expect_eq(atomic_load(&tc_leases_metrics(leases)->leases_opened_total), 0);
}
