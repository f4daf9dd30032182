/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/request/request.h"

#include <string.h>
#include <strings.h>

#include "proto/query.h"

/* Called in a parser's callback: the return value ends the parse (not 1, which in on_headers_complete means that no body
 * follows). */
static int refuse(struct tc_http_head *h, int status, const char *why) {
  if (h->status == 0) {
    h->status = status;
    h->why = why;
  }
  return -1;
}

/* --- the request line -------------------------------------------------------------------------- */

static int on_url(http_parser *parser, const char *at, size_t n) {
  struct tc_http_head *h = parser->data;

  if (n > TC_HTTP_URL_MAX - h->url_len) return refuse(h, 414, "the URL is too long");
  memcpy(h->url + h->url_len, at, n);
  h->url_len += n;
  return 0;
}

/* Splits "/path?query". If "http://host" precedes it, that host replaces Host. */
static int take_url(struct tc_http_head *h) {
  struct tc_http_request *r = &h->request;
  struct http_parser_url url;

  h->url[h->url_len] = '\0';
  r->path = h->url;
  if (h->url[0] != '/') {
    http_parser_url_init(&url);
    if (http_parser_parse_url(h->url, h->url_len, 0, &url) != 0 ||
        (url.field_set & (1 << UF_HOST)) == 0)
      return refuse(h, 400, "the URL is neither a path nor whole");
    size_t from = url.field_data[UF_HOST].off, len = strcspn(h->url + from, "/?#");
    if (from > 0 && h->url[from - 1] == '[') from--, len++;
    if (len >= sizeof r->host) return refuse(h, 400, "Host is too long");
    memcpy(r->host, h->url + from, len);
    r->host[len] = '\0';
    r->path = h->url + from + len;
    if (*r->path != '/') return refuse(h, 400, "the URL has no path");
  }
  r->path[strcspn(r->path, "#")] = '\0';
  r->query = strchr(r->path, '?');
  if (r->query != NULL)
    *r->query++ = '\0';
  else
    r->query = h->url + h->url_len; /* the closing NUL */
  if (!tp_percent_undo(r->path, false)) return refuse(h, 400, "the path is not well encoded");
  return 0;
}

/* --- fields ------------------------------------------------------------------------------------ */

/* Tests for RFC 9110's token: http_parser accepts some names with a space. */
static bool is_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int on_name(http_parser *parser, const char *at, size_t n) {
  struct tc_http_head *h = parser->data;

  if (h->in_value) h->name_len = 0;
  h->in_value = false;
  for (size_t i = 0; i < n; i++) {
    if (!is_token(at[i])) return refuse(h, 400, "a field's name has an invalid character");
    /* The end of a longer name is dropped: no known field is that long. */
    if (h->name_len < sizeof h->name - 1) h->name[h->name_len++] = at[i];
  }
  h->name[h->name_len] = '\0';
  return 0;
}

static const char no_body[] = "a request of this method has no body";

static bool may_have_body(const struct tc_http_head *h) {
  return h->parser.method != HTTP_GET && h->parser.method != HTTP_HEAD &&
         h->parser.method != HTTP_DELETE;
}

static int begin_value(struct tc_http_head *h) {
#define KEPT(name, field)                                                                          \
  { name, h->request.field, sizeof h->request.field - 1 }
  const struct tc_http_field kept[] = { KEPT("host", host),
                                        KEPT("range", range),
                                        KEPT("if-range", if_range),
                                        KEPT("if-none-match", if_none_match),
                                        KEPT("last-event-id", last_event_id),
                                        KEPT("origin", origin),
                                        KEPT("content-type", content_type),
                                        KEPT("accept", accept),
                                        KEPT("sec-fetch-site", sec_fetch_site),
                                        KEPT("expect", expect),
                                        KEPT("want-content-digest", want_content_digest),
                                        h->extra };
#undef KEPT

  h->in_value = true;
  h->value = NULL;
  h->value_len = 0;
  if (strcasecmp(h->name, "transfer-encoding") == 0)
    return refuse(h, may_have_body(h) ? 411 : 413,
                  may_have_body(h) ? "a body needs a Content-Length; Transfer-Encoding is not read"
                                   : no_body);
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
    if (kept[i].name == NULL || strcasecmp(h->name, kept[i].name) != 0) continue;
    h->value = kept[i].value;
    h->value_max = kept[i].bytes_max;
    if (h->value == h->request.host && h->has_host) return refuse(h, 400, "Host is given twice");
    if (h->value == h->request.host) h->has_host = true;
    if (h->value[0] != '\0') return refuse(h, 400, "a field is given twice");
  }
  return 0;
}

static int on_value(http_parser *parser, const char *at, size_t n) {
  struct tc_http_head *h = parser->data;

  if (!h->in_value && begin_value(h) != 0) return -1;
  if (h->value == NULL) return 0;
  if (n > h->value_max - h->value_len) return refuse(h, 431, "a field's value is too long");
  if (memchr(at, '\0', n) != NULL) return refuse(h, 400, "a field's value contains a NUL");
  memcpy(h->value + h->value_len, at, n);
  h->value_len += n;
  h->value[h->value_len] = '\0';
  return 0;
}

/* Returns 1: the parser must not read the body, which the connection reads. */
static int on_fields_end(http_parser *parser) {
  struct tc_http_head *h = parser->data;
  const bool reads = parser->method == HTTP_GET || parser->method == HTTP_HEAD;

  if (parser->http_major != 1) return refuse(h, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
  if (parser->flags & F_CONTENTLENGTH) h->request.body_bytes = parser->content_length;
  if (h->request.body_bytes > 0 && !may_have_body(h)) return refuse(h, 413, no_body);
  if (!h->has_host && (parser->http_minor > 0 || !reads)) return refuse(h, 400, "Host is missing");
  if (h->request.expect[0] != '\0' && strcasecmp(h->request.expect, "100-continue") != 0)
    return refuse(h, 417, "nothing but 100-continue can be expected");
  parser->upgrade = 0; /* a server may ignore Upgrade */
  return take_url(h) == 0 ? 1 : -1;
}

/* Pauses the parser, which then reports where the head ended; other requests may follow. */
static int on_end(http_parser *parser) {
  struct tc_http_head *h = parser->data;

  h->whole = true;
  h->request.method = parser->method;
  h->request.is_head = parser->method == HTTP_HEAD;
  h->request.minor = parser->http_minor;
  h->request.keep = http_should_keep_alive(parser) != 0;
  http_parser_pause(parser, 1);
  return 0;
}

/* --- public ------------------------------------------------------------------------------------ */

void tc_http_head_init(struct tc_http_head *h, size_t bytes_max) {
  memset(h, 0, sizeof *h);
  h->bytes_max = bytes_max;
  h->in_value = true; /* the first piece of a name begins one */
  http_parser_init(&h->parser, HTTP_REQUEST);
  h->parser.data = h;
}

tb_rc tc_http_head_feed(struct tc_http_head *h, const unsigned char *bytes, size_t n,
                        size_t *out_used) {
  static const http_parser_settings settings = { .on_url = on_url,
                                                 .on_header_field = on_name,
                                                 .on_header_value = on_value,
                                                 .on_headers_complete = on_fields_end,
                                                 .on_message_complete = on_end };
  size_t room = h->bytes_max - h->bytes;
  size_t fed = n < room ? n : room;
  size_t used = http_parser_execute(&h->parser, &settings, (const char *)bytes, fed);

  *out_used = used;
  h->bytes += used;
  if (h->whole) return TB_END;
  if (h->status == 0 && HTTP_PARSER_ERRNO(&h->parser) != HPE_OK)
    refuse(h, HTTP_PARSER_ERRNO(&h->parser) == HPE_INVALID_METHOD ? 501 : 400,
           http_errno_description(HTTP_PARSER_ERRNO(&h->parser)));
  if (h->status == 0 && h->bytes == h->bytes_max)
    refuse(h, 431, "the head of the request is too long");
  return h->status == 0 ? TB_OK : TB_PROTOCOL;
}
