/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/http.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "tools/tracectl/remote/client_tls.h"
#include "tools/tracectl/remote/curl.h"

enum {
  QUIET_S = 30,
  LOST_MS = 3000, /* time for a collector to restart */
  CUTS_MAX = 5,   /* in succession, without a byte */
  PAUSE_MS = 100,
  TURN_MS = 1000,
  ANSWER_BYTES_MAX = 72 << 20,
  ERROR_BYTES_MAX = 64 << 10,
  BUFFER_BYTES = 512 << 10,
};

struct tk_http {
  struct tk_endpoint where;
  struct tk_curl_to to;
  CURLM *multi;
  CURL *curl;
  atomic_bool stopped;
  bool reached; /* connected at least once */
  bool cut;     /* connected this time, but lost */
  char why[CURL_ERROR_SIZE];
  struct tb_mem mem;
  struct tb_buf body;
  /* state of the current request */
  const struct tk_http_ask *ask;
  struct tk_http_answer answer;
  uint64_t taken; /* of its range, over all connections */
  bool moved;     /* this connection has received bytes, */
  bool has_head;  /* after a complete head */
  char range[64]; /* Content-Range */
  struct tb_diag *diag;
  tb_rc rc; /* error found by a callback */
};

/* ---- callbacks of curl ---- */

static tb_rc fail_here(struct tk_http *h, tb_rc rc) {
  return h->rc = tb_fail(h->diag, rc, "%s", tb_rc_text(rc));
}

static void keep_field(const char *line, size_t n, const char *name, char *out, size_t out_bytes) {
  size_t len = strlen(name);

  if (n <= len || strncasecmp(line, name, len) != 0) return;
  for (line += len, n -= len; n > 0 && (*line == ' ' || *line == '\t'); line++) n--;
  while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' ')) n--;
  snprintf(out, out_bytes, "%.*s", (int)n, line);
}

/* Each head begins with its status; 1xx, or a proxy's, may precede the answer's. */
static size_t take_head(char *line, size_t size, size_t n, void *self) {
  struct tk_http *h = self;
  struct tk_http_answer *a = &h->answer;

  (void)size; /* always 1 */
  h->has_head = n > 0 && (*line == '\r' || *line == '\n');
  if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) a->type[0] = a->digest[0] = h->range[0] = '\0';
  keep_field(line, n, "Content-Type:", a->type, sizeof a->type);
  keep_field(line, n, "Content-Digest:", a->digest, sizeof a->digest);
  keep_field(line, n, "Content-Range:", h->range, sizeof h->range);
  return n;
}

static unsigned status_of(const struct tk_http *h) {
  long status = 0;

  curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
  return (unsigned)status;
}

static bool is_good(unsigned status) {
  return status >= 200 && status <= 299;
}

/* Checks that the received range is the requested one. */
static tb_rc check_range(struct tk_http *h) {
  uint64_t first;

  if (h->ask->bytes == 0) return TB_OK;
  if (status_of(h) == 206 && sscanf(h->range, "bytes %" SCNu64 "-", &first) == 1 &&
      first == h->ask->first + h->taken)
    return TB_OK;
  return tb_fail(h->diag, TB_PROTOCOL, "%.120s: the answer is not the range that was asked for",
                 h->where.shown);
}

static tb_rc take_good(struct tk_http *h, const char *bytes, size_t n) {
  if (!h->moved) TB_TRY(check_range(h));
  h->moved = true;
  h->answer.len += n;
  h->taken += n;
  if (h->ask->bytes != 0 && h->taken > h->ask->bytes)
    return tb_fail(h->diag, TB_PROTOCOL, "%.120s: more bytes than were asked for", h->where.shown);
  if (h->ask->take != NULL) return h->ask->take(h->ask->self, (const unsigned char *)bytes, n);
  if (h->answer.len > ANSWER_BYTES_MAX) return fail_here(h, TB_BUDGET);
  tb_buf_add(&h->body, bytes, n);
  return h->body.rc == TB_OK ? TB_OK : fail_here(h, h->body.rc);
}

static size_t take_body(char *bytes, size_t size, size_t n, void *self) {
  struct tk_http *h = self;

  (void)size; /* always 1 */
  if (is_good(status_of(h)))
    h->rc = take_good(h, bytes, n);
  else if (h->body.len + n <= ERROR_BYTES_MAX)
    tb_buf_add(&h->body, bytes, n);
  return h->rc == TB_OK ? n : CURL_WRITEFUNC_ERROR;
}

/* ---- open and close ---- */

static void init_curl(void) {
  curl_global_init(CURL_GLOBAL_DEFAULT); /* otherwise each handle would try, and fail */
}

static void set_all(struct tk_http *h) {
  CURL *c = h->curl;

  h->to = (struct tk_curl_to){
    .where = &h->where, .agent = "tracectl", .quiet_s = QUIET_S, .buffer_bytes = BUFFER_BYTES
  };
  tk_curl_set(c, &h->to);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->why);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_head);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
}

tb_rc tk_http_open(const struct tk_endpoint *where, struct tb_diag *diag, struct tk_http **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct tk_http *h = calloc(1, sizeof *h);

  pthread_once(&once, init_curl);
  if (h == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  h->where = *where;
  tb_mem_init(&h->mem, tb_mem_libc, NULL, (size_t)2 * ANSWER_BYTES_MAX);
  tb_buf_init(&h->body, &h->mem);
  h->multi = curl_multi_init();
  h->curl = curl_easy_init();
  if (h->multi == NULL || h->curl == NULL) {
    tk_http_close(h);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  tb_rc rc = tk_curl_check(where, diag);
  if (rc != TB_OK) {
    tk_http_close(h);
    return rc;
  }
  set_all(h);
  *out = h;
  return TB_OK;
}

void tk_http_close(struct tk_http *h) {
  if (h == NULL) return;
  curl_easy_cleanup(h->curl);
  curl_multi_cleanup(h->multi);
  tb_buf_fini(&h->body);
  free(h);
}

void tk_http_stop(struct tk_http *h) {
  atomic_store(&h->stopped, true);
  curl_multi_wakeup(h->multi);
}

/* ---- requests ---- */

static void add_field(struct curl_slist **list, const char *field) {
  struct curl_slist *more = curl_slist_append(*list, field);

  if (more != NULL) *list = more; /* if it fails the answer's type is wrong, which is noticed */
}

static void set_question(struct tk_http *h, struct curl_slist **fields) {
  const struct tk_http_ask *ask = h->ask;
  uint64_t first = ask->first + h->taken;
  char range[64], accept[128], url[TK_URL_BYTES + TK_HTTP_PATH_BYTES];
  CURL *c = h->curl;

  snprintf(accept, sizeof accept, "Accept: %s", ask->accept);
  add_field(fields, accept);
  if (ask->sum) add_field(fields, "Want-Content-Digest: crc32c=1");
  if (ask->body != NULL) add_field(fields, "Content-Type: application/protobuf");
  if (ask->body != NULL) add_field(fields, "Expect:"); /* send the body at once */
  snprintf(url, sizeof url, "%s%s", h->where.url, ask->path);
  snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, first, ask->first + ask->bytes - 1);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, *fields);
  curl_easy_setopt(c, CURLOPT_URL, url);
  curl_easy_setopt(c, CURLOPT_RANGE, ask->bytes != 0 ? range : NULL);
  curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
  if (ask->body != NULL) {
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask->body);
  }
  curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, ask->method);
}

/* curl checks its deadlines every TURN_MS; a signal or tk_http_stop() wakes it. */
static CURLcode run_request(struct tk_http *h) {
  CURLcode code = CURLE_OUT_OF_MEMORY;
  struct CURLMsg *msg;
  int running = 0, left;

  if (curl_multi_add_handle(h->multi, h->curl) != CURLM_OK) return code;
  do {
    if (curl_multi_perform(h->multi, &running) != CURLM_OK) break;
    if (running > 0) curl_multi_poll(h->multi, NULL, 0, TURN_MS, NULL);
  } while (running > 0 && !atomic_load(&h->stopped));
  if (running > 0) code = CURLE_ABORTED_BY_CALLBACK;
  while ((msg = curl_multi_info_read(h->multi, &left)) != NULL) code = msg->data.result;
  curl_multi_remove_handle(h->multi, h->curl);
  return code;
}

/* ---- results ---- */

static tb_rc code_of(const char *name) {
#define TB_RESULT(ID, num, cls, text)                                                              \
  if (strcmp(name, #ID) == 0) return TB_##ID;
#include "base/result.def"
#undef TB_RESULT
  return TB_IO;
}

/* A collector's errors are JSON; others come from a proxy or another server. */
static tb_rc error_of(struct tk_http *h, unsigned status) {
  json_t *said = json_loadb((const char *)h->body.data, h->body.len, 0, NULL);
  const char *name = json_string_value(json_object_get(said, "code"));
  const char *words = json_string_value(json_object_get(said, "error"));
  tb_rc rc = name != NULL ? code_of(name) : TB_IO;

  if (name != NULL && words != NULL && rc != TB_OK)
    rc = tb_fail(h->diag, rc == TB_AGAIN ? TB_BUSY : rc, "%.190s", words);
  else
    rc = tb_fail(h->diag, status == 401 || status == 403 || status == 407 ? TB_REFUSED : TB_IO,
                 "HTTP %u from %.90s, and not in a collector's words; is a proxy before it?",
                 status, h->where.shown);
  json_decref(said);
  return rc;
}

static tb_rc judge(struct tk_http *h) {
  unsigned status = status_of(h);

  h->answer.status = status;
  h->answer.body = h->body.data;
  return is_good(status) ? TB_OK : error_of(h, status);
}

static bool has(const struct tk_http *h, const char *words) {
  return strstr(h->why, words) != NULL;
}

/* OpenSSL's errors if the port is not for readers. */
static const char *other_port(const struct tk_http *h) {
  if (has(h, "no application protocol"))
    return "; is it the port for agents? Readers use " TK_READERS_PORT;
  if (has(h, "wrong version number")) return "; it does not speak TLS: try http://";
  return "";
}

/* Strips "OpenSSL/3.0.19: error:0A000460:SSL routines::". */
static const char *words_of(const struct tk_http *h) {
  const char *routines = strstr(h->why, "SSL routines::");

  return routines != NULL ? routines + strlen("SSL routines::") : h->why;
}

static tb_rc refused(struct tk_http *h) {
  if (h->to.rc != TB_OK) return h->to.rc; /* our own certificates cannot be read */
  return tb_fail(h->diag, TB_REFUSED, "the handshake with %.70s failed: %.70s%s", h->where.shown,
                 words_of(h), other_port(h));
}

static tb_rc not_reached(struct tk_http *h, long error) {
  bool denied = error == EACCES && h->where.path[0] != '\0';

  return tb_fail(h->diag, TB_IO, "no collector answers on %.110s: %.60s%s", h->where.shown,
                 error != 0 ? strerror((int)error) : h->why,
                 denied ? "; readers are members of its group" : "");
}

static tb_rc no_http(struct tk_http *h) {
  return tb_fail(h->diag, TB_IO,
                 "%.80s does not speak HTTP; is it the feed's port%s? Readers use " TK_READERS_PORT,
                 h->where.shown, h->where.tls ? "" : ", or one with TLS (https://)");
}

static tb_rc lost(struct tk_http *h) {
  if (h->answer.status == 0 && !h->where.tls && h->where.path[0] == '\0' && !h->moved)
    return tb_fail(h->diag, TB_IO,
                   "%.80s: the connection was lost without an answer; if it speaks TLS, try "
                   "https://",
                   h->where.shown);
  return tb_fail(h->diag, TB_IO, "%.110s: the connection was lost", h->where.shown);
}

static tb_rc result_of(struct tk_http *h, CURLcode code) {
  long error = 0;

  curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &error);
  if (atomic_load(&h->stopped)) return tb_fail(h->diag, TB_END, "stopped");
  switch ((int)code) {
  case CURLE_OK:
    if (!h->has_head) break; /* curl accepts an incomplete head */
    h->reached = true;
    return judge(h);
  case CURLE_WRITE_ERROR: return h->rc != TB_OK ? h->rc : fail_here(h, TB_NOMEM);
  case CURLE_COULDNT_CONNECT: return h->reached ? TB_AGAIN : not_reached(h, error);
  case CURLE_SSL_CONNECT_ERROR:
    if (!has(h, "SSL_connect:")) return refused(h);
    break; /* the connection ended in the body */
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_ENGINE_INITFAILED: return refused(h);
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
    /* in TLS 1.3 the server's alert about a certificate arrives late */
    if (has(h, "alert")) return refused(h);
    break;
  case CURLE_GOT_NOTHING:
  case CURLE_PARTIAL_FILE: break;
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_WEIRD_SERVER_REPLY: return no_http(h);
  case CURLE_OPERATION_TIMEDOUT:
    if (!has(h, "Operation too slow")) return not_reached(h, ETIMEDOUT);
    return tb_fail(h->diag, TB_IO, "%.120s: no answer within %d s", h->where.shown, QUIET_S);
  case CURLE_OUT_OF_MEMORY: return fail_here(h, TB_NOMEM);
  case CURLE_URL_MALFORMAT:
    return tb_fail(h->diag, TB_BROKEN, "--server: \"%.80s\" is not to be understood: %.60s",
                   h->where.shown, h->why);
  default:
    return tb_fail(h->diag, TB_IO, "%.90s: %.90s", h->where.shown,
                   h->why[0] != '\0' ? h->why : curl_easy_strerror(code));
  }
  h->reached = h->cut = true;
  return h->ask->body == NULL ? TB_AGAIN : lost(h);
}

/* Returns TB_AGAIN if the connection was lost and the request may be repeated. */
static tb_rc ask_once(struct tk_http *h) {
  struct curl_slist *fields = NULL;

  if (h->ask->take == NULL) h->taken = 0; /* a stored answer begins anew */
  tb_buf_fini(&h->body);
  tb_buf_init(&h->body, &h->mem);
  h->answer = (struct tk_http_answer){ .len = (size_t)h->taken };
  h->moved = h->has_head = h->cut = false;
  h->rc = h->to.rc = TB_OK;
  h->to.diag = h->diag;
  h->why[0] = '\0';
  set_question(h, &fields);
  tb_rc rc = result_of(h, run_request(h));
  curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
  curl_slist_free_all(fields);
  return rc;
}

static void pause_a_little(struct tk_http *h) {
  curl_multi_poll(h->multi, NULL, 0, PAUSE_MS, NULL);
}

static bool can_go_on(const struct tk_http *h) {
  return h->ask->take == NULL || h->ask->bytes != 0 || h->taken == 0;
}

tb_rc tk_http_ask(struct tk_http *h, const struct tk_http_ask *ask, struct tb_diag *diag,
                  struct tk_http_answer *out) {
  struct timespec until = tc_from_now(LOST_MS);
  unsigned cuts = 0;
  tb_rc rc;

  h->ask = ask;
  h->diag = diag;
  h->taken = 0;
  while ((rc = ask_once(h)) == TB_AGAIN) {
    if (ask->bytes != 0 && h->taken == ask->bytes) break; /* complete */
    if (h->moved) cuts = 0;
    cuts += h->cut;
    if (cuts == 1 && h->cut) until = tc_from_now(LOST_MS);
    if (cuts >= CUTS_MAX || tc_is_past(until) || !can_go_on(h)) return lost(h);
    if (!h->moved && !(h->cut && cuts == 1)) pause_a_little(h);
  }
  if (rc != TB_OK && rc != TB_AGAIN) return rc;
  *out = h->answer;
  return TB_OK;
}
