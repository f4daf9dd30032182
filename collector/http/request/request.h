/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of an HTTP/1.1 request from bytes in pieces of any size. The only file that uses http_parser.
 *
 * Against request smuggling it is stricter than http_parser: any Transfer-Encoding, a body of GET, HEAD or DELETE, a
 * second Host or a field name with a space ends the connection, because a proxy may have understood these bytes
 * differently. A body needs Content-Length and is not read here.
 *
 * Memory    none besides the struct, which has room for the fields.
 * Errors    feed: TB_OK: more bytes are needed; TB_END: ->request is complete; TB_PROTOCOL: ->status and ->why are the
 *           answer, after which the connection must end.
 */
#ifndef TC_HTTP_REQUEST_H
#define TC_HTTP_REQUEST_H

#include <http_parser.h>

#include "base/result.h"
#include "base/text/hostport.h"

enum { TC_HTTP_URL_MAX = 2 << 10, TC_HTTP_VALUE_MAX = 256 };

struct tc_http_request {
  enum http_method method;
  bool is_head;                  /* HEAD: answer with the head only */
  bool keep;                     /* another request may follow on this connection */
  unsigned minor;                /* minor version of HTTP/1.x */
  char *path;                    /* percent-decoded; begins with '/', has no NUL */
  char *query;                   /* not decoded, after the '?'; "" for none */
  char host[TB_HOST_MAX + 9];    /* with port, if there is one */
  char range[TC_HTTP_VALUE_MAX]; /* "" if the field was not sent; likewise below */
  char if_range[TC_HTTP_VALUE_MAX];
  char if_none_match[TC_HTTP_VALUE_MAX];
  char last_event_id[TC_HTTP_VALUE_MAX];
  char origin[TC_HTTP_VALUE_MAX];
  char content_type[TC_HTTP_VALUE_MAX];
  char accept[4 * TC_HTTP_VALUE_MAX]; /* scrapers send many types */
  char sec_fetch_site[16];
  char expect[16]; /* "" or "100-continue" */
  char want_content_digest[TC_HTTP_VALUE_MAX];
  uint64_t body_bytes; /* length of the body, which follows the head */
};

/* A field that only this reader wants. */
struct tc_http_field {
  const char *name; /* in lower case; NULL: none */
  char *value;      /* of bytes_max and a NUL; "" if the field was not sent */
  size_t bytes_max;
};

struct tc_http_head {
  struct tc_http_request request;
  int status; /* after TB_PROTOCOL: status of the answer */
  const char *why;
  size_t bytes;               /* bytes of this head so far */
  struct tc_http_field extra; /* set between init and feed */

  http_parser parser; /* from here on private to request.c */
  size_t bytes_max, url_len, name_len, value_len;
  char *value; /* value of the current field; NULL: the field is ignored */
  size_t value_max;
  bool in_value, has_host, whole;
  char name[32];
  char url[TC_HTTP_URL_MAX + 1];
};

/* Initialises the head, also for a connection's next request. */
void tc_http_head_init(struct tc_http_head *head, size_t bytes_max);
TB_MUST tb_rc tc_http_head_feed(struct tc_http_head *head, const unsigned char *bytes, size_t n,
                                size_t *out_used);

#endif
