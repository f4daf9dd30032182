/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of connections with more to send than the loop may send at once. Each gets a turn; after TURN_NS the loop handles
 * its other events first, so that a large answer or slow readers do not delay others. */
#include <stdlib.h>

#include "collector/http/private.h"

enum { TURN_NS = 1000000, SLICE_BYTES = TC__FILE_CHUNK_BYTES };

struct tc__http_rest {
  struct tb_mem mem;
  struct tb_buf body;
  size_t at;
};

/* --- a body in slices -------------------------------------------------------------------------- */

void tc__rest_free(struct tc__http_conn *c) {
  if (c->rest == NULL) return;
  tb_buf_fini(&c->rest->body);
  free(TB_MOVE(c->rest));
}

bool tc__rest_begin(struct tc__http_conn *c, struct tc__http_answer *a) {
  if (a->body.len <= SLICE_BYTES) return false;
  struct tc__http_rest *rest = malloc(sizeof *rest);
  if (rest == NULL) return false;
  rest->mem = a->mem;
  rest->body = a->body;
  rest->body.mem = &rest->mem;
  rest->at = 0;
  tb_buf_init(&a->body, &a->mem);
  c->rest = rest;
  tc__turn_take(c);
  return true;
}

/* Returns true if more can be sent at once. */
static bool rest_turn(struct tc__http_conn *c) {
  struct tc__http_rest *rest = c->rest;
  size_t n = rest->body.len - rest->at;

  if (tc_tls_unsent(c->tls) >= SLICE_BYTES) return false; /* on_drained() continues */
  if (n > SLICE_BYTES) n = SLICE_BYTES;
  rest->at += n;
  tc_tls_send(c->tls, rest->body.data + rest->at - n, n);
  if (rest->at < rest->body.len) return true;
  tc__rest_free(c);
  tc__conn_done(c);
  return false;
}

/* --- the queue --------------------------------------------------------------------------------- */

void tc__turn_leave(struct tc__http_conn *c) {
  if (c->in_line) TAILQ_REMOVE(&c->http->line, c, line);
  c->in_line = false;
}

/* Returns true if more can be sent at once. */
static bool send_turn(struct tc__http_conn *c) {
  if (c->live != NULL) return tc__live_turn(c);
  if (c->file != NULL) return tc__http_file_turn(c);
  return c->rest != NULL && rest_turn(c);
}

static void on_turn(uv_idle_t *handle) {
  struct tc_http *http = handle->data;
  uint64_t end_ns = uv_hrtime() + TURN_NS;
  struct tc__http_conn *c;

  while ((c = TAILQ_FIRST(&http->line)) != NULL) {
    tc__turn_leave(c);
    if (send_turn(c)) tc__turn_take(c);
    if (uv_hrtime() >= end_ns) return;
  }
  uv_idle_stop(handle);
}

void tc__turn_take(struct tc__http_conn *c) {
  if (c->in_line || c->http->closing) return;
  c->in_line = true;
  TAILQ_INSERT_TAIL(&c->http->line, c, line);
  uv_idle_start(&c->http->turns, on_turn);
}

tb_rc tc__turns_open(struct tc_http *http) {
  TAILQ_INIT(&http->line);
  http->turn_bytes = malloc(TC__FILE_CHUNK_BYTES);
  return http->turn_bytes != NULL ? TB_OK : TB_NOMEM;
}

void tc__turns_start(struct tc_http *http) {
  uv_idle_init(http->env.tls->uv, &http->turns);
  http->turns.data = http;
}

void tc__turns_close(struct tc_http *http) {
  uv_close((uv_handle_t *)&http->turns, NULL);
}
