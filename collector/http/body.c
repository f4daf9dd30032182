/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers the whole body of a request, up to body_bytes_max, after access.c has accepted the head. */
#include <stdlib.h>
#include <string.h>

#include "collector/http/private.h"

void tc__body_begin(struct tc__http_conn *c) {
  static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
  const struct tc_http_request *r = &c->head.request;

  if (r->body_bytes > c->http->env.limits.body_bytes_max) {
    tc__conn_fail(c, 413, "the body is larger than http.body_bytes_max");
    return;
  }
  c->body = malloc(r->body_bytes);
  if (c->body == NULL) {
    tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
    return;
  }
  c->busy = false;
  if (r->expect[0] != '\0' && r->minor > 0) tc_tls_send(c->tls, go_on, sizeof go_on - 1);
}

size_t tc__body_take(struct tc__http_conn *c, const unsigned char *bytes, size_t n) {
  size_t taken = n < c->body_left ? n : (size_t)c->body_left;

  memcpy(c->body + c->body_len, bytes, taken);
  c->body_len += taken;
  c->body_left -= taken;
  if (c->body_left == 0) {
    c->busy = true;
    tc__http_answer(c);
  }
  return taken;
}

void tc__body_free(struct tc__http_conn *c) {
  free(c->body);
  c->body = NULL;
  c->body_len = 0;
}
