/* SPDX-License-Identifier: Apache-2.0 */
/* http_parser finds the parts of a head; what may be asked is the table of routes. */
#include "collector/http.h"

#include <assert.h>
#include <http_parser.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hostport.h"
#include "collector/journal.h"
#include "collector/listener.h"

enum {
  HEAD_BYTES_MAX = 8 << 10,
  URL_MAX = 1 << 10,
  REQUEST_MS = 5000,
  ANSWER_BYTES_MAX = 16 << 20
};

struct tc_http {
  struct tc_http_env env;
  struct tc_listener *listener;
  SSL_CTX *ctx; /* NULL: plain */
  struct tb_hostport where;
  struct request *first;
  size_t count;
};

struct request {
  struct request *next, **at;
  struct tc_http *http;
  struct tc_tls *tls;
  http_parser parser;
  uint64_t began_ms;
  size_t head_bytes;
  bool answered, value_came;
  size_t url_len, host_len, field_len;
  char url[URL_MAX + 1], host[TB_HOST_MAX + 9], field[16];
  char peer[TC_PEER_MAX + 1];
};

/* --- answers ----------------------------------------------------------------------------------- */

struct answer {
  int status;
  const char *type;
  struct tb_buf body;
};

static const char *status_text(int status) {
  switch (status) {
  case 200: return "OK";
  case 400: return "Bad Request";
  case 403: return "Forbidden";
  case 404: return "Not Found";
  case 405: return "Method Not Allowed";
  case 413: return "Content Too Large";
  case 414: return "URI Too Long";
  case 421: return "Misdirected Request";
  case 431: return "Request Header Fields Too Large";
  case 503: return "Service Unavailable";
  default: return "Internal Server Error";
  }
}

static void send_answer(struct request *r, const struct answer *a) {
  char head[512];
  int len = snprintf(head, sizeof head,
                     "HTTP/1.1 %d %s\r\n"
                     "Content-Type: %s\r\n"
                     "Content-Length: %zu\r\n"
                     "%s"
                     "Cache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\n"
                     "Content-Security-Policy: default-src 'none'\r\n"
                     "Connection: close\r\n\r\n",
                     a->status, status_text(a->status), a->type, a->body.len,
                     a->status == 405 ? "Allow: GET, HEAD\r\n" : "");

  r->answered = true;
  tc_tls_send(r->tls, head, (size_t)len);
  if (r->parser.method != HTTP_HEAD) tc_tls_send(r->tls, a->body.data, a->body.len);
  tc_tls_close(r->tls, NULL);
}

static void send_text(struct request *r, int status, const char *text) {
  struct tb_mem mem;
  struct answer a = { .status = status, .type = "text/plain; charset=utf-8" };

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&a.body, &mem);
  tb_buf_printf(&a.body, "%s\n", text);
  send_answer(r, &a);
  tb_buf_fini(&a.body);
}

/* --- routes ------------------------------------------------------------------------------------ */

static void answer_metrics(struct request *r) {
  const struct tc_http_source *source = &r->http->env.source;
  struct tb_mem mem;
  struct answer a = { .status = 200, .type = "text/plain; version=0.0.4; charset=utf-8" };

  tb_mem_init(&mem, tb_mem_libc, NULL, ANSWER_BYTES_MAX);
  tb_buf_init(&a.body, &mem);
  if (source->metrics(source->self, &a.body) == TB_OK)
    send_answer(r, &a);
  else
    send_text(r, 500, "out of memory");
  tb_buf_fini(&a.body);
}

static void answer_healthz(struct request *r) {
  const struct tc_http_source *source = &r->http->env.source;
  const char *why = source->unhealthy(source->self);

  send_text(r, why == NULL ? 200 : 503, why == NULL ? "ok" : why);
}

static const struct route {
  const char *path;
  bool for_readers; /* over TLS a reader certificate is needed */
  void (*answer)(struct request *r);
} routes[] = {
  { "/healthz", false, answer_healthz },
  { "/metrics", true, answer_metrics },
};

/* "name", "name:port", "[::1]:port": the name must be one of this host's, or the configured one. */
static bool host_is_ours(const struct request *r) {
  char host[sizeof r->host];
  char *end;

  memcpy(host, r->host, sizeof host);
  if (host[0] == '[') {
    end = strchr(host, ']');
    if (end == NULL) return false;
    *end = '\0';
    return strcmp(host + 1, "::1") == 0 || strcmp(host + 1, r->http->where.host) == 0;
  }
  end = strchr(host, ':');
  if (end != NULL) *end = '\0';
  return tb_host_is_loopback(host) || strcasecmp(host, r->http->where.host) == 0;
}

static void dispatch(struct request *r) {
  struct tb_diag diag;
  char identity[TC_IDENTITY_BYTES + 1];
  size_t path_len = strcspn(r->url, "?");

  if (r->parser.method != HTTP_GET && r->parser.method != HTTP_HEAD) {
    send_text(r, 405, "only GET and HEAD are served");
    return;
  }
  if (r->http->ctx == NULL && !host_is_ours(r)) {
    send_text(r, 421, "this host goes by another name");
    return;
  }
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    const struct route *route = &routes[i];

    if (strlen(route->path) != path_len || memcmp(route->path, r->url, path_len) != 0) continue;
    tb_diag_clear(&diag);
    if (route->for_readers && r->http->ctx != NULL &&
        tc_tls_identity(tc_tls_ssl(r->tls), "reader", &diag, identity) != TB_OK)
      send_text(r, 403, diag.text);
    else
      route->answer(r);
    return;
  }
  send_text(r, 404, "no such page; try /metrics or /healthz");
}

/* --- the head ---------------------------------------------------------------------------------- */

static int on_url(http_parser *parser, const char *at, size_t n) {
  struct request *r = parser->data;

  if (n > URL_MAX - r->url_len) {
    send_text(r, 414, "URL too long");
    return 1;
  }
  memcpy(r->url + r->url_len, at, n);
  r->url_len += n;
  return 0;
}

/* A field's name may come in pieces; only "Host" matters, and a longer one is another. */
static int on_field(http_parser *parser, const char *at, size_t n) {
  struct request *r = parser->data;

  if (r->value_came) r->field_len = 0;
  r->value_came = false;
  for (size_t i = 0; i < n && r->field_len < sizeof r->field - 1; i++)
    r->field[r->field_len++] = at[i];
  r->field[r->field_len] = '\0';
  return 0;
}

static int on_value(http_parser *parser, const char *at, size_t n) {
  struct request *r = parser->data;

  r->value_came = true; /* the next piece of a name begins a new one */
  if (strcasecmp(r->field, "host") != 0) return 0;
  if (n > sizeof r->host - 1 - r->host_len) {
    send_text(r, 400, "Host too long");
    return 1;
  }
  memcpy(r->host + r->host_len, at, n);
  r->host_len += n;
  return 0;
}

static int on_head(http_parser *parser) {
  struct request *r = parser->data;

  if ((parser->flags & F_CHUNKED) ||
      (parser->content_length != 0 && parser->content_length != UINT64_MAX)) {
    send_text(r, 413, "a request has no body here");
    return 1;
  }
  return 0;
}

static int on_complete(http_parser *parser) {
  dispatch(parser->data);
  return 1; /* one request a connection: whatever follows is not read */
}

static const http_parser_settings settings = {
  .on_url = on_url,
  .on_header_field = on_field,
  .on_header_value = on_value,
  .on_headers_complete = on_head,
  .on_message_complete = on_complete,
};

/* --- connections ------------------------------------------------------------------------------- */

static tb_rc on_bytes(void *self, const unsigned char *bytes, size_t n, size_t *used) {
  struct request *r = self;

  *used = n;
  r->head_bytes += n;
  http_parser_execute(&r->parser, &settings, (const char *)bytes, n);
  if (r->answered) return TB_END;
  if (HTTP_PARSER_ERRNO(&r->parser) != HPE_OK || r->parser.upgrade) {
    send_text(r, 400, "not a request");
    return TB_PROTOCOL;
  }
  if (r->head_bytes > HEAD_BYTES_MAX) {
    send_text(r, 431, "request head too long");
    return TB_BUDGET;
  }
  return TB_OK;
}

static void on_open(void *self) {
  (void)self;
}
static void on_drained(void *self) {
  (void)self;
}

static void on_closed(void *self, const char *why) {
  struct request *r = self;
  char text[TC_ESCAPE_MAX + 1];

  if (why[0] != '\0' && !r->answered)
    tc_log(TC_INFO, "http", "peer=%s: %s", r->peer, tc_escape(text, why, strlen(why)));
  *r->at = r->next;
  if (r->next != NULL) r->next->at = r->at;
  r->http->count--;
  free(r);
}

static bool ready(void *self) {
  struct tc_http *http = self;

  return http->count < http->env.requests_max;
}

static void accepted(void *self, int fd, const char *peer) {
  struct tc_http *http = self;
  struct request *r = calloc(1, sizeof *r);
  struct tc_tls_sink sink = {
    .self = r, .open = on_open, .bytes = on_bytes, .drained = on_drained, .closed = on_closed
  };

  if (r == NULL) {
    close(fd);
    return;
  }
  if (tc_tls_accept(http->env.tls, http->ctx, fd, sink, &r->tls) != TB_OK) {
    free(r);
    return;
  }
  r->http = http;
  r->began_ms = uv_now(http->env.tls->uv);
  snprintf(r->peer, sizeof r->peer, "%s", peer);
  http_parser_init(&r->parser, HTTP_REQUEST);
  r->parser.data = r;
  r->next = http->first;
  if (r->next != NULL) r->next->at = &r->next;
  r->at = &http->first;
  http->first = r;
  http->count++;
}

void tc_http_tick(struct tc_http *http) {
  uint64_t now_ms;

  if (http == NULL) return;
  now_ms = uv_now(http->env.tls->uv);
  for (struct request *r = http->first; r != NULL; r = r->next)
    if (now_ms - r->began_ms >= REQUEST_MS) tc_tls_abort(r->tls, "request took too long");
}

/* --- the server -------------------------------------------------------------------------------- */

tb_rc tc_http_reload(struct tc_http *http, struct tb_diag *diag) {
  static const struct tc_tls_terms terms = { .peer_may_be_none = true };
  SSL_CTX *fresh;

  if (http == NULL || tb_host_is_loopback(http->where.host)) return TB_OK;
  TB_TRY(tc_tls_context_new(http->env.certs, &terms, diag, &fresh));
  SSL_CTX_free(http->ctx);
  http->ctx = fresh;
  return TB_OK;
}

static void http_freep(struct tc_http **http) {
  tc_http_free(*http);
}

tb_rc tc_http_open(const struct tc_http_env *env, struct tb_diag *diag, struct tc_http **out) {
  TB_CLEANUP(http_freep) struct tc_http *http = calloc(1, sizeof *http);

  if (http == NULL) return tb_fail(diag, TB_NOMEM, "out of memory");
  http->env = *env;
  TB_TRY(tb_hostport_parse(env->address, diag, &http->where));
  TB_TRY(tc_http_reload(http, diag));
  struct tc_listener_sink sink = { http, ready, accepted };
  TB_TRY(
      env->socket != 0
          ? tc_listener_adopt(env->tls->uv, env->socket, env->address, sink, diag, &http->listener)
          : tc_listener_open(env->tls->uv, env->address, sink, diag, &http->listener));
  *out = TB_MOVE(http);
  return TB_OK;
}

void tc_http_close(struct tc_http *http) {
  if (http == NULL) return;
  tc_listener_close(TB_MOVE(http->listener));
  for (struct request *r = http->first; r != NULL; r = r->next) tc_tls_abort(r->tls, NULL);
}

void tc_http_free(struct tc_http *http) {
  if (http == NULL) return;
  assert(http->first == NULL);
  SSL_CTX_free(http->ctx);
  free(http);
}

const char *tc_http_address(const struct tc_http *http) {
  return tc_listener_address(http->listener);
}
