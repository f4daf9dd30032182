/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/url/ask.h"

#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hostport.h"

enum {
  CONNECT_MS = 5000,
  QUIET_S = 30, /* without a byte, beyond the seconds that a trace takes */
  REDIRECTS_MAX = 5,
  WAIT_S = 600,
  BUSY_MS = 1000, /* between two requests while another reader traces the program */
  SAID_BYTES = 240,
  TRACE_SECONDS = 5,
  SECONDS_MAX = 3600,
};

#define TRACE_PATH "/debug/pprof/trace"

struct get {
  const struct tk_url_ask *ask;
  const struct tk_url_terms *terms;
  const atomic_bool *stopped;
  tk_url_take_fn *take;
  void *self;
  CURL *curl;
  char url[TK_URL_TEXT_BYTES]; /* of this request: a redirect has another */
  char why[CURL_ERROR_SIZE];
  char said[SAID_BYTES + 1]; /* the beginning of an error's body */
  size_t said_len;
  bool has_begun; /* take() has got bytes */
  tb_rc taken;    /* its error */
};

/* ---- URLs ---- */

static bool get_part(CURLU *u, CURLUPart part, char *out, size_t room) {
  char *text = NULL;
  bool fits = curl_url_get(u, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK && strlen(text) < room;

  snprintf(out, room, "%s", fits ? text : "");
  curl_free(text);
  return fits;
}

static bool origin_of(CURLU *u, char out[256]) {
  char scheme[8], host[200], port[8];

  if (!get_part(u, CURLUPART_SCHEME, scheme, sizeof scheme) ||
      !get_part(u, CURLUPART_HOST, host, sizeof host) ||
      !get_part(u, CURLUPART_PORT, port, sizeof port))
    return false;
  snprintf(out, 256, "%s://%s:%s", scheme, host, port);
  return true;
}

static bool origin_of_text(const char *text, char out[256]) {
  CURLU *u = curl_url();
  bool good =
      u != NULL && curl_url_set(u, CURLUPART_URL, text, 0) == CURLUE_OK && origin_of(u, out);

  curl_url_cleanup(u);
  return good;
}

static bool is_http(const char *text) {
  return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Go's handler takes the time from the query; without one it traces for a second. */
static tb_rc set_seconds(CURLU *u, const struct tk_url_terms *terms, struct tb_diag *diag,
                         struct tk_url_ask *out) {
  char path[TK_URL_TEXT_BYTES], query[TK_URL_TEXT_BYTES] = "";

  get_part(u, CURLUPART_PATH, path, sizeof path);
  bool has_query = get_part(u, CURLUPART_QUERY, query, sizeof query) && *query != '\0';
  if (strcmp(path, "/") == 0 && !has_query) {
    curl_url_set(u, CURLUPART_PATH, TRACE_PATH, 0);
    strcpy(path, TRACE_PATH);
  }
  size_t n = strlen(path), tail = strlen(TRACE_PATH);
  out->is_trace = n >= tail && strcmp(path + n - tail, TRACE_PATH) == 0;
  if (terms->has_seconds && (has_query || !out->is_trace))
    return tb_fail(diag, TB_BROKEN, "--seconds is for a URL without a path, or one that ends in %s",
                   TRACE_PATH);
  if (!out->is_trace) return TB_OK;
  if (has_query) {
    double named = 1;
    const char *value = strstr(query, "seconds=");

    if (value != NULL) sscanf(value, "seconds=%lf", &named);
    out->seconds = named >= 0 && named <= SECONDS_MAX ? (unsigned)named + 1 : SECONDS_MAX;
    return TB_OK;
  }
  out->seconds = terms->has_seconds ? terms->seconds : TRACE_SECONDS;
  snprintf(query, sizeof query, "seconds=%u", out->seconds);
  curl_url_set(u, CURLUPART_QUERY, query, 0);
  return TB_OK;
}

static tb_rc parse_with(CURLU *u, const char *text, const struct tk_url_terms *terms,
                        struct tb_diag *diag, struct tk_url_ask *out) {
  CURLUcode code = curl_url_set(u, CURLUPART_URL, text, 0);

  if (code != CURLUE_OK) return tb_fail(diag, TB_BROKEN, "not a URL: %s", curl_url_strerror(code));
  TB_TRY(set_seconds(u, terms, diag, out));
  bool fits = get_part(u, CURLUPART_URL, out->url, sizeof out->url) && origin_of(u, out->origin);
  curl_url_set(u, CURLUPART_USER, NULL, 0);
  curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
  if (fits && get_part(u, CURLUPART_URL, out->shown, sizeof out->shown)) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "this URL is too long");
}

static void init_curl(void) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
}

tb_rc tk_url_parse(const char *text, const struct tk_url_terms *terms, struct tb_diag *diag,
                   struct tk_url_ask *out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, init_curl);
  *out = (struct tk_url_ask){ 0 };
  if (!is_http(text))
    return tb_fail(diag, TB_BROKEN, "only http:// and https:// can be read, beside files");
  CURLU *u = curl_url();
  if (u == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  tb_rc rc = parse_with(u, text, terms, diag, out);
  curl_url_cleanup(u);
  return rc;
}

/* ---- one request ---- */

static long status_of(const struct get *g) {
  long status = 0;

  curl_easy_getinfo(g->curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

static bool is_page(const struct get *g) {
  const char *type = NULL;

  curl_easy_getinfo(g->curl, CURLINFO_CONTENT_TYPE, &type);
  return type != NULL && strncasecmp(type, "text/html", 9) == 0;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *self) {
  struct get *g = self;

  (void)size; /* always 1 */
  if (status_of(g) != 200 || is_page(g)) {
    for (size_t i = 0; i < n && g->said_len < SAID_BYTES; i++)
      g->said[g->said_len++] = (unsigned char)bytes[i] < ' ' ? ' ' : bytes[i];
    return n;
  }
  g->has_begun = true;
  g->taken = g->take(g->self, bytes, n);
  return g->taken == TB_OK ? n : CURL_WRITEFUNC_ERROR;
}

/* curl calls it at least once a second. */
static int is_over(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  const struct get *g = self;

  (void)a, (void)b, (void)c, (void)d;
  return atomic_load(g->stopped);
}

/* Headers may hold credentials, and a certificate proves who asks: neither goes to another host. */
static struct curl_slist *own_headers(const struct get *g, bool is_home) {
  const struct tk_texts *headers = &g->terms->headers;
  struct curl_slist *list = NULL;

  for (size_t i = 0; is_home && i < headers->n; i++) {
    struct curl_slist *more = curl_slist_append(list, headers->text[i]);
    if (more != NULL) list = more;
  }
  return list;
}

static bool is_loopback(const char *origin) {
  struct tb_hostport at;
  struct tb_diag unused;

  tb_diag_clear(&unused);
  return tb_hostport_parse(strstr(origin, "://") + 3, &unused, &at) == TB_OK &&
         tb_host_is_loopback(at.host);
}

static void set_all(struct get *g, const struct curl_slist *headers, bool is_home) {
  const struct tk_url_terms *t = g->terms;
  char origin[256];
  CURL *c = g->curl;

  curl_easy_reset(c);
  curl_easy_setopt(c, CURLOPT_URL, g->url);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, g->why);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_USERAGENT, "tracectl");
  curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)g->ask->seconds + QUIET_S);
  curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, g);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, is_over);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, g);
  if (t->ca != NULL) curl_easy_setopt(c, CURLOPT_CAINFO, t->ca);
  if (is_home && t->cert != NULL) curl_easy_setopt(c, CURLOPT_SSLCERT, t->cert);
  if (is_home && t->key != NULL) curl_easy_setopt(c, CURLOPT_SSLKEY, t->key);
  if (origin_of_text(g->url, origin) && is_loopback(origin)) curl_easy_setopt(c, CURLOPT_PROXY, "");
}

static CURLcode request(struct get *g) {
  char origin[256];
  bool is_home = origin_of_text(g->url, origin) && strcmp(origin, g->ask->origin) == 0;
  struct curl_slist *headers = own_headers(g, is_home);

  g->why[0] = g->said[0] = '\0';
  g->said_len = 0;
  set_all(g, headers, is_home);
  CURLcode code = curl_easy_perform(g->curl);
  g->said[g->said_len] = '\0';
  curl_slist_free_all(headers);
  return code;
}

/* ---- what an answer means ---- */

static bool says(const struct get *g, const char *words) {
  return strstr(g->said, words) != NULL;
}

static bool is_busy(const struct get *g) {
  return status_of(g) == 500 && says(g, "already enabled");
}

static tb_rc no_pprof(struct tb_diag *diag) {
  return tb_fail(
      diag, TB_IO,
      "404: net/http/pprof is not served there. The program needs  import _ \"net/http/pprof\"  "
      "and a server of http.DefaultServeMux at this port");
}

static tb_rc judge_status(const struct get *g, struct tb_diag *diag) {
  long status = status_of(g);

  if (status == 404 && g->ask->is_trace) return no_pprof(diag);
  if (is_busy(g))
    return tb_fail(diag, TB_IO,
                   "tracing already enabled: another reader, or the program itself, traces it now; "
                   "--wait tries again until that ends");
  if (says(g, "WriteTimeout"))
    return tb_fail(diag, TB_IO,
                   "the server's WriteTimeout is shorter than the %u s of the trace: use a smaller "
                   "--seconds, or a longer WriteTimeout",
                   g->ask->seconds);
  if (status == 401 || status == 403)
    return tb_fail(diag, TB_IO,
                   "access denied (%ld): give a name and password in ~/.netrc, or --header "
                   "'Authorization: ...'",
                   status);
  return tb_fail(diag, TB_IO, "the server answers %ld%s%s", status, *g->said != '\0' ? ": " : "",
                 is_page(g) ? "an HTML page" : g->said);
}

static tb_rc judge_page(const struct get *g, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO,
                 "an HTML page, not a trace%s; a Go program's trace is at " TRACE_PATH "?seconds=5",
                 strstr(g->said, "debug/pprof") != NULL ? " (it is the list of profiles)" : "");
}

static tb_rc judge_failure(const struct get *g, CURLcode code, struct tb_diag *diag) {
  const char *why = g->why[0] != '\0' ? g->why : curl_easy_strerror(code);

  if (g->has_begun) return tb_fail(diag, TB_IO, "the connection was lost: %.150s", why);
  switch ((int)code) {
  case CURLE_COULDNT_CONNECT:
    return tb_fail(diag, TB_IO,
                   "nothing listens on %.120s: is the program running, and its port right?",
                   g->ask->origin);
  case CURLE_COULDNT_RESOLVE_HOST:
    return tb_fail(diag, TB_IO, "no such host: %.150s", g->ask->origin);
  case CURLE_OPERATION_TIMEDOUT:
    return tb_fail(diag, TB_IO, "no answer within %u s", (unsigned)g->ask->seconds + QUIET_S);
  case CURLE_GOT_NOTHING:
    return tb_fail(diag, TB_IO, "the connection was closed without an answer%s",
                   strncmp(g->url, "http:", 5) == 0 ? "; if the server speaks TLS, use https://"
                                                    : "");
  case CURLE_SSL_CONNECT_ERROR:
    return tb_fail(diag, TB_IO, "%.120s%s", why,
                   strstr(why, "wrong version number") != NULL
                       ? "; the server does not speak TLS: use http://"
                       : "");
  case CURLE_PEER_FAILED_VERIFICATION:
    return tb_fail(diag, TB_IO, "%.150s; --tls-ca FILE names the authority to trust", why);
  default: return tb_fail(diag, TB_IO, "%.200s", why);
  }
}

/* *out_again: the next request is that of a redirect. */
static tb_rc follow(struct get *g, struct tb_diag *diag, bool *out_again) {
  char *next = NULL;

  curl_easy_getinfo(g->curl, CURLINFO_REDIRECT_URL, &next);
  if (next == NULL || status_of(g) < 300 || status_of(g) > 399) return TB_OK;
  if (!is_http(next) || strlen(next) >= sizeof g->url)
    return tb_fail(diag, TB_IO,
                   "redirected to %.120s, which is not followed: only http and https are", next);
  if (strncasecmp(g->url, "https:", 6) == 0 && strncasecmp(next, "https:", 6) != 0)
    return tb_fail(diag, TB_IO,
                   "redirected from https to %.120s, which is not followed: it is not "
                   "encrypted",
                   next);
  snprintf(g->url, sizeof g->url, "%s", next);
  *out_again = true;
  return TB_OK;
}

static tb_rc judge(struct get *g, CURLcode code, struct tb_diag *diag, bool *out_again) {
  *out_again = false;
  if (atomic_load(g->stopped)) return TB_END;
  if (g->taken != TB_OK) return g->taken;
  if (code != CURLE_OK) return judge_failure(g, code, diag);
  TB_TRY(follow(g, diag, out_again));
  if (*out_again) return TB_OK;
  if (status_of(g) != 200) return judge_status(g, diag);
  if (is_page(g)) return judge_page(g, diag);
  if (!g->has_begun) return tb_fail(diag, TB_IO, "the answer is empty");
  return TB_OK;
}

static tb_rc get_with(struct get *g, struct tb_diag *diag) {
  unsigned redirects = 0, waited_ms = 0;
  bool again;

  for (;;) {
    CURLcode code = request(g);
    if (code == CURLE_OK && g->terms->wait && is_busy(g) && waited_ms < WAIT_S * 1000 &&
        !atomic_load(g->stopped)) {
      waited_ms += BUSY_MS;
      poll(NULL, 0, BUSY_MS);
      continue;
    }
    TB_TRY(judge(g, code, diag, &again));
    if (!again) return TB_OK;
    if (++redirects > REDIRECTS_MAX)
      return tb_fail(diag, TB_IO, "more than %d redirects, the last to %.100s", REDIRECTS_MAX,
                     g->url);
  }
}

tb_rc tk_url_get(const struct tk_url_ask *ask, const struct tk_url_terms *terms,
                 const atomic_bool *stopped, tk_url_take_fn *take, void *self,
                 struct tb_diag *diag) {
  struct get g = { .ask = ask, .terms = terms, .stopped = stopped, .take = take, .self = self };

  g.curl = curl_easy_init();
  if (g.curl == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  snprintf(g.url, sizeof g.url, "%s", ask->url);
  tb_rc rc = get_with(&g, diag);
  curl_easy_cleanup(g.curl);
  return rc;
}
