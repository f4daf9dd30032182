/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a request on, and its answer back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/tracectl/page/private.h"

enum {
  QUEUED_BYTES_MAX = 64 << 10, /* with more, the collector's answer is held */
  FIELDS_BYTES_MAX = 16 << 10,
  FIELDS = 8,
  FIELD_BYTES = 4 * TC_HTTP_VALUE_MAX + 32,
  TARGET_BYTES = 4 * TC_HTTP_URL_MAX,
};

/* ---- the answer ---- */

static bool is_field(const char *line, size_t n, const char *name) {
  size_t len = strlen(name);

  return n > len && line[len] == ':' && strncasecmp(line, name, len) == 0;
}

/* Those of one connection, and what is for us. */
static bool is_hop(const char *line, size_t n) {
  static const char *const names[] = {
    "Connection",         "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade",
    "Proxy-Authenticate", "Set-Cookie", "Set-Cookie2",       "Alt-Svc", "Strict-Transport-Security"
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (is_field(line, n, names[i])) return true;
  return false;
}

static void on_field(void *self, const char *line, size_t n) {
  static const char length[] = "Content-Length";
  struct tk__client *c = self;

  if (is_hop(line, n)) return;
  if (is_field(line, n, length)) {
    char digits[24];
    snprintf(digits, sizeof digits, "%.*s", (int)(n - sizeof length), line + sizeof length);
    c->left = strtoull(digits, NULL, 10);
    c->knows_length = true;
  }
  if (c->fields.len + n > FIELDS_BYTES_MAX) {
    c->fields.rc = TB_BUDGET;
    return;
  }
  tb_buf_add(&c->fields, line, n);
  tb_buf_text(&c->fields, "\r\n");
}

static bool has_body(const struct tk__client *c, unsigned status) {
  return !c->head.request.is_head && status != 204 && status != 304;
}

/* An answer without a length is sent in chunks, so that its end can be told from a lost connection. */
static enum tk_taken on_head(void *self, unsigned status) {
  struct tk__client *c = self;
  const struct tc_http_request *r = &c->head.request;
  bool knows_end = c->knows_length || !has_body(c, status);
  char line[64];

  if (c->closing || c->fields.rc != TB_OK) return TK_GIVE_UP;
  c->is_chunked = !knows_end && r->minor > 0;
  if (!r->keep || (!knows_end && !c->is_chunked)) c->ending = true;
  if (!has_body(c, status)) c->left = 0;
  snprintf(line, sizeof line, "HTTP/1.1 %u \r\n", status);
  tk__client_send(c, line, strlen(line));
  if (c->is_chunked) tb_buf_text(&c->fields, "Transfer-Encoding: chunked\r\n");
  if (c->ending)
    tb_buf_text(&c->fields, "Connection: close\r\n");
  else if (r->minor == 0)
    tb_buf_text(&c->fields, "Connection: keep-alive\r\n");
  tb_buf_text(&c->fields, "\r\n");
  if (c->fields.rc != TB_OK) return TK_GIVE_UP;
  tk__client_send(c, c->fields.data, c->fields.len);
  c->has_head = true;
  return TK_TAKEN;
}

static enum tk_taken on_body(void *self, const char *bytes, size_t n) {
  struct tk__client *c = self;
  char line[24];

  if (c->closing || !c->has_head) return TK_GIVE_UP;
  if (c->queued > QUEUED_BYTES_MAX) {
    c->is_held = true;
    return TK_HOLD;
  }
  if (c->knows_length) c->left -= n < c->left ? n : c->left;
  if (c->is_chunked) {
    snprintf(line, sizeof line, "%zx\r\n", n);
    tk__client_send(c, line, strlen(line));
  }
  tk__client_send(c, bytes, n);
  if (c->is_chunked) tk__client_send(c, "\r\n", 2);
  return c->closing ? TK_GIVE_UP : TK_TAKEN;
}

static void on_end(void *self, const char *why) {
  struct tk__client *c = self;
  bool is_whole = why == NULL && c->has_head && c->left == 0;

  c->relay = NULL;
  tb_buf_fini(&c->fields);
  if (c->closing) return;
  if (!c->has_head) {
    tk__answer_no_collector(c, why != NULL ? why : "the collector's answer has no head");
  } else if (!is_whole) {
    tk__client_close(c);
  } else {
    if (c->is_chunked) tk__client_send(c, "0\r\n\r\n", 5);
    tk__client_done(c);
  }
  if (!c->closing) tk__client_turn(c);
}

/* ---- the request ---- */

static bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && strchr("/-._~!$&'()*+,;=:@", c) != NULL);
}

/* The path was decoded. */
static void write_target(const struct tc_http_request *r, char out[TARGET_BYTES]) {
  size_t n = 0;

  for (const char *at = r->path; *at != '\0'; at++) {
    if (is_plain(*at))
      out[n++] = *at;
    else
      n += (size_t)snprintf(out + n, TARGET_BYTES - n, "%%%02X", (unsigned char)*at);
  }
  snprintf(out + n, TARGET_BYTES - n, "%s%s", *r->query != '\0' ? "?" : "", r->query);
}

static bool is_text(const char *value) {
  for (; *value != '\0'; value++)
    if ((unsigned char)*value < ' ' && *value != '\t') return false;
  return true;
}

/* Cookie, Origin and the like are for us: what we pass on is the user's own. */
static unsigned write_fields(const struct tk__client *c, char text[FIELDS][FIELD_BYTES]) {
  const struct tc_http_request *r = &c->head.request;
  const struct {
    const char *name, *value;
  } known[] = { { "Accept", r->accept },
                { "Range", r->range },
                { "If-Range", r->if_range },
                { "If-None-Match", r->if_none_match },
                { "Last-Event-ID", r->last_event_id },
                { "Content-Type", c->body_len > 0 ? r->content_type : "" },
                { "Want-Content-Digest", r->want_content_digest } };
  unsigned n = 0;

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (*known[i].value != '\0' && is_text(known[i].value))
      snprintf(text[n++], FIELD_BYTES, "%s: %s", known[i].name, known[i].value);
  snprintf(text[n++], FIELD_BYTES, "Expect:"); /* send the body at once */
  return n;
}

void tk__relay_begin(struct tk__client *c) {
  static const struct tk_relay_ops ops = { on_field, on_head, on_body, on_end };
  const struct tc_http_request *r = &c->head.request;
  char target[TARGET_BYTES], text[FIELDS][FIELD_BYTES];
  const char *fields[FIELDS + 1] = { NULL };
  unsigned n = write_fields(c, text);

  for (unsigned i = 0; i < n; i++) fields[i] = text[i];
  write_target(r, target);
  c->has_head = c->is_chunked = c->knows_length = c->is_held = false;
  c->left = 0;
  tb_buf_fini(&c->fields);
  tb_buf_init(&c->fields, &c->server->mem);
  const struct tk_relay_ask ask = { .method = r->is_head ? "HEAD" : http_method_str(r->method),
                                    .target = target,
                                    .fields = fields,
                                    .body = c->body != NULL ? c->body : NULL,
                                    .len = c->body_len };
  if (tk_relay_begin(c->server->upstream, &ask, &ops, c, &c->relay) != TB_OK)
    tk__answer_refuse(c, 503, tb_rc_text(TB_NOMEM));
}
