/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a browser. While a request is being answered, later bytes wait in input. */
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/page/private.h"

enum {
  CLIENTS_MAX = 256,
  IDLE_MS = 60000,
  HEAD_MS = 10000, /* from its first byte */
  BODY_MS = 30000,
  LINGER_MS = 2000, /* a client that is still sending reads the last answer first */
  RESUME_BYTES = 16 << 10,
};

static void start_reading(struct tk__client *c);

static void set_deadline(struct tk__client *c, uint64_t ms) {
  c->deadline_ms = ms != 0 ? uv_now(&c->server->loop) + ms : 0;
}

/* ---- the end ---- */

static void free_body(struct tk__client *c) {
  if (c->body != NULL) tb_mem_free(&c->server->mem, c->body, c->body_len + c->body_left);
  c->body = NULL;
  c->body_len = c->body_left = 0;
}

static void on_closed(uv_handle_t *handle) {
  struct tk__client *c = handle->data;

  tk_relay_drop(c->relay); /* not before: we may have been called by it */
  tb_buf_fini(&c->fields);
  free_body(c);
  c->server->n_closing--;
  tb_mem_free(&c->server->mem, c, sizeof *c);
}

/* May be called in a callback of its relay, which then gives up. */
void tk__client_close(struct tk__client *c) {
  if (c->closing) return;
  c->closing = true;
  LIST_REMOVE(c, all);
  c->server->n_clients--;
  c->server->n_closing++;
  uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_shut(uv_shutdown_t *shut, int status) {
  (void)status;
  free(shut);
}

/* All has been sent. The rest of what the client sends is read and dropped: closing at once would reset the connection, and the
 * answer might be lost with it. */
static void linger(struct tk__client *c) {
  uv_shutdown_t *shut = malloc(sizeof *shut);

  set_deadline(c, LINGER_MS);
  if (shut == NULL || uv_shutdown(shut, (uv_stream_t *)&c->tcp, on_shut) != 0) {
    free(shut);
    tk__client_close(c);
    return;
  }
  start_reading(c);
}

/* ---- sending ---- */

struct sent {
  uv_write_t write;
  struct tk__client *client;
  size_t n;
  unsigned char bytes[];
};

static void on_written(uv_write_t *write, int status) {
  struct sent *s = write->data;
  struct tk__client *c = s->client;

  c->queued -= s->n;
  tb_mem_free(&c->server->mem, s, sizeof *s + s->n);
  if (c->closing) return;
  if (status != 0) {
    tk__client_close(c);
    return;
  }
  if (c->is_held && c->queued < RESUME_BYTES) {
    c->is_held = false;
    tk_relay_resume(c->relay);
  }
  if (!c->closing && c->queued == 0) tk__client_turn(c);
}

void tk__client_send(struct tk__client *c, const void *bytes, size_t n) {
  const uv_buf_t all = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)n);
  uv_stream_t *stream = (uv_stream_t *)&c->tcp;
  struct sent *s;

  if (c->closing || n == 0) return;
  int now = c->queued == 0 ? uv_try_write(stream, &all, 1) : 0;
  if (now < 0 && now != UV_EAGAIN) {
    tk__client_close(c);
    return;
  }
  size_t done = now > 0 ? (size_t)now : 0;
  if (done == n) return;
  if (tb_mem_alloc(&c->server->mem, sizeof *s + n - done, &s) != TB_OK) {
    tk__client_close(c);
    return;
  }
  s->client = c;
  s->n = n - done;
  s->write.data = s;
  memcpy(s->bytes, (const unsigned char *)bytes + done, s->n);
  c->queued += s->n;
  const uv_buf_t rest = uv_buf_init((char *)s->bytes, (unsigned)s->n);
  if (uv_write(&s->write, stream, &rest, 1, on_written) == 0) return;
  c->queued -= s->n;
  tb_mem_free(&c->server->mem, s, sizeof *s + s->n);
  tk__client_close(c);
}

void tk__client_done(struct tk__client *c) {
  if (c->closing) return;
  free_body(c);
  c->busy = false;
  c->has_begun = false;
}

/* ---- requests ---- */

static void begin_head(struct tk__client *c) {
  tc_http_head_init(&c->head, TK__HEAD_BYTES_MAX);
  c->cookies[0] = '\0';
  c->head.extra = (struct tc_http_field){ "cookie", c->cookies, TK__COOKIE_BYTES_MAX };
}

static void refuse(struct tk__client *c, int status, const char *why) {
  c->ending = true;
  tk__answer_refuse(c, status, why);
}

static void begin_body(struct tk__client *c) {
  static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
  uint64_t n = c->head.request.body_bytes;
  void *body;

  if (n > TK__BODY_BYTES_MAX) {
    refuse(c, 413, "the body is larger than 1 MiB: use tracectl itself for that");
    return;
  }
  if (tb_mem_alloc(&c->server->mem, (size_t)n, &body) != TB_OK) {
    refuse(c, 503, tb_rc_text(TB_NOMEM));
    return;
  }
  c->body = body;
  c->body_left = (size_t)n;
  set_deadline(c, BODY_MS);
  if (c->head.request.expect[0] != '\0') tk__client_send(c, go_on, sizeof go_on - 1);
}

static void ask(struct tk__client *c) {
  c->busy = true;
  set_deadline(c, 0);
  tk__relay_begin(c);
}

static void take_request(struct tk__client *c) {
  const struct tc_http_request *r = &c->head.request;
  struct tk_ruling ruling = tk_guard_rule(&c->server->guard, r, c->cookies);

  switch (ruling.verdict) {
  case TK_PASS:
    if (r->body_bytes > 0)
      begin_body(c);
    else
      ask(c);
    break;
  case TK_WELCOME: tk__answer_welcome(c); break;
  case TK_REFUSE:
    if (r->body_bytes > 0) c->ending = true; /* it is not read */
    tk__answer_refuse(c, ruling.status, ruling.why);
    break;
  }
}

static size_t take_body(struct tk__client *c) {
  size_t n = c->input_len < c->body_left ? c->input_len : c->body_left;

  memcpy(c->body + c->body_len, c->input, n);
  c->body_len += n;
  c->body_left -= n;
  if (c->body_left == 0) ask(c);
  return n;
}

static size_t take_head(struct tk__client *c) {
  size_t used;

  if (!c->has_begun) {
    begin_head(c);
    set_deadline(c, HEAD_MS);
    c->has_begun = true;
  }
  switch ((int)tc_http_head_feed(&c->head, c->input, c->input_len, &used)) {
  case TB_OK: break;
  case TB_END: take_request(c); break;
  default: refuse(c, c->head.status, c->head.why); used = c->input_len;
  }
  return used;
}

void tk__client_turn(struct tk__client *c) {
  while (!c->closing && !c->ending && !c->busy && c->queued == 0 && c->input_len > 0) {
    size_t used = c->body_left > 0 ? take_body(c) : take_head(c);
    c->input_len -= used;
    memmove(c->input, c->input + used, c->input_len);
  }
  if (c->closing) return;
  if (c->ending && !c->busy) {
    c->input_len = 0;
    if (c->queued == 0 && uv_is_writable((uv_stream_t *)&c->tcp)) linger(c);
    return;
  }
  if (!c->busy && !c->has_begun) set_deadline(c, IDLE_MS);
  start_reading(c);
}

/* ---- receiving ---- */

static void lend_input(uv_handle_t *handle, size_t wanted, uv_buf_t *out) {
  struct tk__client *c = handle->data;

  (void)wanted;
  *out = uv_buf_init((char *)c->input + c->input_len, (unsigned)(TK__INPUT_BYTES - c->input_len));
}

static void stop_reading(struct tk__client *c) {
  if (c->is_reading) uv_read_stop((uv_stream_t *)&c->tcp);
  c->is_reading = false;
}

/* A client that ends its side is gone: browsers do not end a half. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct tk__client *c = stream->data;

  (void)buf;
  if (n < 0) {
    tk__client_close(c);
    return;
  }
  c->input_len += (size_t)n;
  tk__client_turn(c);
  if (!c->closing && c->input_len == TK__INPUT_BYTES) stop_reading(c);
}

static void start_reading(struct tk__client *c) {
  if (c->is_reading || c->input_len == TK__INPUT_BYTES) return;
  c->is_reading = uv_read_start((uv_stream_t *)&c->tcp, lend_input, on_read) == 0;
  if (!c->is_reading) tk__client_close(c);
}

/* ---- connecting ---- */

/* The one that has waited for its next request the longest makes way. */
static bool make_room(struct tk__server *server) {
  struct tk__client *c, *oldest = NULL;

  if (server->n_clients < CLIENTS_MAX) return true;
  LIST_FOREACH(c, &server->clients, all)
  if (c->deadline_ms != 0 && (oldest == NULL || c->deadline_ms < oldest->deadline_ms)) oldest = c;
  if (oldest == NULL) return false;
  tk__client_close(oldest);
  return true;
}

static bool is_of_our_user(const struct tk__client *c) {
  uv_os_fd_t fd;

  return uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0 &&
         tk_peer_is_ours(c->server->peers_fd, fd);
}

void tk__client_accept(struct tk__server *server) {
  struct tk__client *c;
  bool has_room = make_room(server);

  if (tb_mem_alloc(&server->mem, sizeof *c, &c) != TB_OK) return;
  c->server = server;
  if (uv_tcp_init(&server->loop, &c->tcp) != 0) {
    tb_mem_free(&server->mem, c, sizeof *c);
    return;
  }
  c->tcp.data = c;
  LIST_INSERT_HEAD(&server->clients, c, all);
  server->n_clients++;
  if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&c->tcp) != 0 || !has_room ||
      !is_of_our_user(c)) {
    tk__client_close(c);
    return;
  }
  uv_tcp_nodelay(&c->tcp, 1);
  set_deadline(c, IDLE_MS);
  start_reading(c);
}
