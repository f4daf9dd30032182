/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule by itself; tests/e2e/test_local_page.py asks a running page. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/page/guard.h"

enum { COOKIES = 400 };
static struct tk_guard guard;
static char own[COOKIES], target[200];

static void make_guard(void) {
  cr_assert_eq(tk_guard_init(&guard, 8073, false), TB_OK);
  snprintf(own, sizeof own, "%s=%s", guard.cookie, guard.secret);
}

TestSuite(guard, .init = make_guard);

/* target: path, and a query after its '?' */
static struct tc_http_request ask(enum http_method method, const char *path) {
  struct tc_http_request r = { .method = method, .is_head = method == HTTP_HEAD };

  snprintf(target, sizeof target, "%s", path);
  r.path = target;
  r.query = strchr(target, '?');
  if (r.query != NULL)
    *r.query++ = '\0';
  else
    r.query = target + strlen(target);
  snprintf(r.host, sizeof r.host, "127.0.0.1:8073");
  return r;
}

static int status_of(const struct tc_http_request *r, const char *cookies) {
  struct tk_ruling ruling = tk_guard_rule(&guard, r, cookies);

  if (ruling.verdict != TK_REFUSE) return ruling.verdict == TK_PASS ? 200 : 303;
  cr_assert_not_null(ruling.why);
  return ruling.status;
}

static int get(const char *path, const char *cookies) {
  struct tc_http_request r = ask(HTTP_GET, path);

  return status_of(&r, cookies);
}

Test(guard, two_have_other_secrets) {
  struct tk_guard other;

  cr_assert_eq(tk_guard_init(&other, 8073, false), TB_OK);
  cr_assert_eq(strlen(guard.token), TK_SECRET_DIGITS);
  cr_assert_str_neq(guard.token, guard.secret);
  cr_assert_str_neq(guard.token, other.token);
  cr_assert_str_neq(guard.secret, other.secret);
}

Test(guard, a_link_is_good_once) {
  char link[200];

  snprintf(link, sizeof link, "/?token=%s", guard.token);
  struct tc_http_request head = ask(HTTP_HEAD, link), post = ask(HTTP_POST, link);
  cr_assert_eq(status_of(&head, ""), 403, "HEAD does not use it");
  cr_assert_eq(status_of(&post, ""), 403);
  cr_assert_eq(get("/?token=", ""), 403);
  cr_assert_eq(get("/other?token=", ""), 403);
  cr_assert_eq(get(link, ""), 303);
  cr_assert_eq(get(link, ""), 403);
  cr_assert_eq(get("/?token=", ""), 403, "a link that was used is not the empty one");
  cr_assert_eq(get(link, own), 303, "whoever is in already goes on");
}

Test(guard, the_cookie_is_found_among_others_and_by_its_whole_name) {
  char cookies[2 * COOKIES];
  const struct {
    const char *before, *after;
    int status;
  } rows[] = { { "", "", 200 },        { "a=b; ", "; c=d", 200 }, { "a=b;", "", 200 },
               { "x", "", 403 },       { "", "0", 403 },          { "a=", "", 403 },
               { "; ; ", "; ;", 200 }, { "a; ", "", 200 },        { "\"", "\"", 403 } };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(cookies, sizeof cookies, "%s%s%s", rows[i].before, own, rows[i].after);
    cr_expect_eq(get("/", cookies), rows[i].status, "%s", cookies);
  }
  cr_expect_eq(get("/", ""), 403);
  snprintf(cookies, sizeof cookies, "%s=%s", guard.cookie, guard.token);
  cr_expect_eq(get("/", cookies), 403, "the link is no cookie");
  snprintf(cookies, sizeof cookies, "tracectl-page-8074=%s", guard.secret);
  cr_expect_eq(get("/", cookies), 403);
}

Test(guard, another_host_origin_or_site_is_refused) {
  struct tc_http_request r = ask(HTTP_GET, "/");

  for (const char *const *host = (const char *const[]){ "", "127.0.0.1", "localhost:8073",
                                                        "127.0.0.1:80730", "evil:8073", NULL };
       *host != NULL; host++) {
    snprintf(r.host, sizeof r.host, "%s", *host);
    cr_expect_eq(status_of(&r, own), 421, "%s", *host);
  }
  r = ask(HTTP_GET, "/");
  for (const char *const *origin =
           (const char *const[]){ "null", "http://127.0.0.1:8074", "https://127.0.0.1:8073",
                                  "http://127.0.0.1:8073.evil", "http://", NULL };
       *origin != NULL; origin++) {
    snprintf(r.origin, sizeof r.origin, "%s", *origin);
    cr_expect_eq(status_of(&r, own), 403, "%s", *origin);
  }
  snprintf(r.origin, sizeof r.origin, "http://127.0.0.1:8073");
  cr_expect_eq(status_of(&r, own), 200);
  snprintf(r.sec_fetch_site, sizeof r.sec_fetch_site, "same-site");
  cr_expect_eq(status_of(&r, own), 403);
}

Test(guard, what_changes_something_needs_act) {
  const struct {
    enum http_method method;
    const char *path;
    int without, with;
  } rows[] = {
    { HTTP_GET, "/", 200, 200 },
    { HTTP_HEAD, "/api/v1/streams", 200, 200 },
    { HTTP_GET, "/no-such-path", 200, 200 },
    { HTTP_GET, "/api/v1/leases/1", 405, 200 },
    { HTTP_HEAD, "/api/v1/leases/1", 405, 405 },
    { HTTP_GET, "/api/v1/jobs/1", 405, 200 },
    { HTTP_POST, "/api/v1/triggers", 405, 200 },
    { HTTP_PUT, "/anything", 405, 200 },
    { HTTP_DELETE, "/api/v1/triggers/slow", 405, 200 },
    { HTTP_OPTIONS, "/", 405, 405 },
    { HTTP_CONNECT, "/", 405, 405 },
    { HTTP_TRACE, "/", 405, 405 },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int act = 0; act < 2; act++) {
      struct tc_http_request r = ask(rows[i].method, rows[i].path);
      guard.may_act = act == 1;
      cr_expect_eq(status_of(&r, own), act == 1 ? rows[i].with : rows[i].without, "%s %s",
                   http_method_str(rows[i].method), rows[i].path);
      cr_expect_eq(status_of(&r, ""), 403);
    }
}
