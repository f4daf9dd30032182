/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/page/guard.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hex.h"
#include "proto/route.h"

static bool make_secret(char out[TK_SECRET_DIGITS + 1]) {
  unsigned char bytes[TK_SECRET_DIGITS / 2];

  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  tb_hex(bytes, sizeof bytes, out);
  return true;
}

tb_rc tk_guard_init(struct tk_guard *g, unsigned port, bool may_act) {
  *g = (struct tk_guard){ .may_act = may_act };
  if (port == 80) /* browsers leave it out */
    snprintf(g->host, sizeof g->host, "127.0.0.1");
  else
    snprintf(g->host, sizeof g->host, "127.0.0.1:%u", port);
  snprintf(g->cookie, sizeof g->cookie, "tracectl-page-%u", port);
  return make_secret(g->token) && make_secret(g->secret) ? TB_OK : TB_IO;
}

/* Takes the same time wherever they differ. */
static bool is_secret(const char *text, size_t n, const char secret[TK_SECRET_DIGITS + 1]) {
  return n == TK_SECRET_DIGITS && secret[0] != '\0' && CRYPTO_memcmp(text, secret, n) == 0;
}

/* Looks through "a=1; b=2". */
static bool has_cookie(const struct tk_guard *g, const char *cookies) {
  size_t name = strlen(g->cookie);

  for (const char *at = cookies; *at != '\0';) {
    size_t n = strcspn(at, ";");
    if (n > name && strncmp(at, g->cookie, name) == 0 && at[name] == '=' &&
        is_secret(at + name + 1, n - name - 1, g->secret))
      return true;
    at += n;
    at += strspn(at, "; ");
  }
  return false;
}

static struct tk_ruling refuse(int status, const char *why) {
  return (struct tk_ruling){ TK_REFUSE, status, why };
}

static const struct tk_ruling pass = { TK_PASS, 0, NULL }, welcome = { TK_WELCOME, 0, NULL };

/* "/?token=...", with GET: what looks at a link before its reader does may use HEAD. */
static const char *token_of(const struct tc_http_request *r) {
  static const char name[] = "token=";

  if (strcmp(r->path, "/") != 0 || r->is_head || r->method != HTTP_GET) return NULL;
  return strncmp(r->query, name, sizeof name - 1) == 0 ? r->query + sizeof name - 1 : NULL;
}

static struct tk_ruling take_token(struct tk_guard *g, const char *token, const char *cookies) {
  if (is_secret(token, strlen(token), g->token)) {
    g->token[0] = '\0';
    return welcome;
  }
  if (has_cookie(g, cookies)) return welcome; /* a reload of the link */
  return refuse(
      403,
      "this link was used before, or is not of this tracectl page: start it again for another");
}

/* GET of a lease frees events, GET of a job keeps it alive. */
static bool only_reads(const struct tc_http_request *r) {
  unsigned unused;
  const struct tp_route *route = tp_route_find(TP_GET, r->path, &unused);

  if (r->method != HTTP_GET && r->method != HTTP_HEAD) return false;
  return route == NULL || (route->id != TP_ROUTE_LEASE && route->id != TP_ROUTE_JOB);
}

static bool may_change(const struct tc_http_request *r) {
  switch ((int)r->method) {
  case HTTP_GET:
  case HTTP_POST:
  case HTTP_PUT:
  case HTTP_DELETE: return !r->is_head;
  default: return false;
  }
}

static bool is_own_origin(const struct tk_guard *g, const char *origin) {
  static const char scheme[] = "http://";

  return *origin == '\0' || (strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
                             strcmp(origin + sizeof scheme - 1, g->host) == 0);
}

static bool is_own_site(const char *site) {
  return *site == '\0' || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

struct tk_ruling tk_guard_rule(struct tk_guard *g, const struct tc_http_request *r,
                               const char *cookies) {
  const char *token;

  if (strcmp(r->host, g->host) != 0)
    return refuse(421, "only the address that tracectl page printed is answered");
  if (!is_own_origin(g, r->origin)) return refuse(403, "Origin is another page than this one");
  token = token_of(r);
  if (token != NULL) return take_token(g, token, cookies);
  if (!has_cookie(g, cookies))
    return refuse(403, "open the link that tracectl page printed: it lets this browser in, once");
  if (!is_own_site(r->sec_fetch_site)) return refuse(403, "Sec-Fetch-Site is another site");
  if (only_reads(r)) return pass;
  if (!may_change(r)) return refuse(405, "this method is not passed on");
  return g->may_act ? pass
                    : refuse(405, "tracectl page only reads; with --act it changes things, too");
}
