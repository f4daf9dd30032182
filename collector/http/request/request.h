/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP/1.1 request, out of bytes that come in any pieces.
 *
 * The one file that knows http_parser. On top of what it checks we are narrow: Transfer-Encoding in any
 * form, a body of GET, HEAD or DELETE, a second Host, a field name with a space: all end the connection,
 * so that what a proxy in front may have thought of these bytes cannot matter (request smuggling). A body has a
 * Content-Length, and is not read here: its bytes follow the head.
 *
 * Memory    none of its own; the struct is as large as the fields it keeps.
 * Errors    feed: TB_OK: more is needed; TB_END: a whole head stands in ->request; TB_PROTOCOL:
 *           ->status and ->why are the answer, after which the connection must end.
 */
#ifndef TC_HTTP_REQUEST_H
#define TC_HTTP_REQUEST_H

#include <http_parser.h>

#include "base/result.h"
#include "base/text/hostport.h"

enum { TC_HTTP_URL_MAX = 2 << 10, TC_HTTP_VALUE_MAX = 256 };

struct tc_http_request {
  enum http_method method;
  bool is_head;                  /* HEAD: the head of the answer only */
  bool keep;                     /* another request may follow on this connection */
  unsigned minor;                /* of HTTP/1.x */
  char *path;                    /* percent-encoding undone; begins with '/', holds no NUL */
  char *query;                   /* as it came, behind the '?'; "" for none */
  char host[TB_HOST_MAX + 9];    /* with its port, if one was given */
  char range[TC_HTTP_VALUE_MAX]; /* "" where the field was not sent */
  char if_range[TC_HTTP_VALUE_MAX];
  char if_none_match[TC_HTTP_VALUE_MAX];
  char last_event_id[TC_HTTP_VALUE_MAX];
  char origin[TC_HTTP_VALUE_MAX];
  char content_type[TC_HTTP_VALUE_MAX];
  char accept[4 * TC_HTTP_VALUE_MAX]; /* scrapers name many */
  char sec_fetch_site[16];
  char expect[16];     /* "" or "100-continue" */
  char want_content_digest[TC_HTTP_VALUE_MAX];
  uint64_t body_bytes; /* that follow the head */
};

struct tc_http_head {
  struct tc_http_request request;
  int status; /* once TB_PROTOCOL: of the answer */
  const char *why;
  size_t bytes; /* of this head so far; 0: the peer has not begun one */

  http_parser parser; /* from here on: request.c's */
  size_t bytes_max, url_len, name_len, value_len;
  char *value; /* the field being filled; NULL: one that does not matter */
  size_t value_max;
  bool in_value, has_host, whole;
  char name[32];
  char url[TC_HTTP_URL_MAX + 1];
};

/* Also readies it for the connection's next request. */
void tc_http_head_init(struct tc_http_head *head, size_t bytes_max);
TB_MUST tb_rc tc_http_head_feed(struct tc_http_head *head, const unsigned char *bytes, size_t n,
                                size_t *out_used);

#endif
