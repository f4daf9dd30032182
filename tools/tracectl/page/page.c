/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/page/page.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/page/private.h"

enum { BACKLOG = 128, SWEEP_MS = 1000, MEMORY_MAX = 96 << 20 };
static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

/* ---- the end ---- */

static void on_upstream_closed(void *self) {
  (void)self;
}

static void close_handle(uv_handle_t *handle, void *self) {
  (void)self;
  if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

/* The loop ends when all its handles have closed. */
static void end(struct tk__server *s) {
  if (s->closing) return;
  s->closing = true;
  while (!LIST_EMPTY(&s->clients)) tk__client_close(LIST_FIRST(&s->clients));
  uv_stop(&s->loop);
}

static void on_signal(uv_signal_t *signal, int number) {
  (void)number;
  end(signal->data);
}

static void lend_nothing(uv_handle_t *handle, size_t wanted, uv_buf_t *out) {
  static char dropped[256];

  (void)handle;
  (void)wanted;
  *out = uv_buf_init(dropped, sizeof dropped);
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  (void)buf;
  if (n < 0) end(stream->data);
}

/* ---- the beginning ---- */

static void on_connection(uv_stream_t *listener, int status) {
  if (status == 0) tk__client_accept(listener->data);
}

static void sweep(uv_timer_t *timer) {
  struct tk__server *s = timer->data;
  struct tk__client *c, *next;

  for (c = LIST_FIRST(&s->clients); c != NULL; c = next) {
    next = LIST_NEXT(c, all);
    if (c->deadline_ms != 0 && c->deadline_ms < uv_now(&s->loop)) tk__client_close(c);
  }
}

static tb_rc fail(int error, const char *what, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "%s: %s", what, uv_strerror(error));
}

static tb_rc listen_at(struct tk__server *s, unsigned port, bool may_act, struct tb_diag *diag) {
  struct sockaddr_in at;
  int len = sizeof at, rc;
  char what[40];

  snprintf(what, sizeof what, "127.0.0.1:%u", port);
  uv_ip4_addr("127.0.0.1", (int)port, &at);
  uv_tcp_init(&s->loop, &s->listener);
  s->listener.data = s;
  if ((rc = uv_tcp_bind(&s->listener, (struct sockaddr *)&at, 0)) != 0 ||
      (rc = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection)) != 0 ||
      (rc = uv_tcp_getsockname(&s->listener, (struct sockaddr *)&at, &len)) != 0)
    return fail(rc, what, diag);
  if (tk_guard_init(&s->guard, ntohs(at.sin_port), may_act) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_IO, "no random bytes for the link");
}

/* A signal that is ignored stays so: nohup. */
static void watch_signal(struct tk__server *s, uv_signal_t *handle, int number) {
  struct sigaction old;

  if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN) return;
  uv_signal_init(&s->loop, handle);
  handle->data = s;
  uv_signal_start(handle, on_signal, number);
}

/* A terminal's end is SIGHUP. */
static void watch_input(struct tk__server *s) {
  if (uv_guess_handle(STDIN_FILENO) != UV_NAMED_PIPE) return;
  uv_pipe_init(&s->loop, &s->input, 0);
  s->input.data = s;
  if (uv_pipe_open(&s->input, STDIN_FILENO) == 0)
    uv_read_start((uv_stream_t *)&s->input, lend_nothing, on_input);
}

static void watch_end(struct tk__server *s) {
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    watch_signal(s, &s->signals[i], signals[i]);
  watch_input(s);
}

static tb_rc serve(struct tk__server *s, const struct tk_page_config *config,
                   struct tb_diag *diag) {
  char link[TK_SECRET_DIGITS + 80];

  TB_TRY(tk_upstream_open(&s->loop, config->where, diag, &s->upstream));
  TB_TRY(listen_at(s, config->port, config->may_act, diag));
  watch_end(s);
  uv_timer_init(&s->loop, &s->sweep);
  s->sweep.data = s;
  uv_timer_start(&s->sweep, sweep, SWEEP_MS, SWEEP_MS);
  snprintf(link, sizeof link, "http://%s/?token=%s", s->guard.host, s->guard.token);
  config->ready(config->self, link);
  uv_run(&s->loop, UV_RUN_DEFAULT);
  return TB_OK;
}

/* Clients' relays end as their handles close, and only then curl may. */
static void close_all(struct tk__server *s) {
  while (s->n_closing > 0) uv_run(&s->loop, UV_RUN_ONCE);
  if (s->upstream != NULL) tk_upstream_close(s->upstream, on_upstream_closed, NULL);
  uv_walk(&s->loop, close_handle, NULL);
  uv_run(&s->loop, UV_RUN_DEFAULT);
  uv_loop_close(&s->loop);
}

tb_rc tk_page_run(const struct tk_page_config *config, struct tb_diag *diag) {
  struct tk__server *s = calloc(1, sizeof *s);
  tb_rc rc;

  if (s == NULL || uv_loop_init(&s->loop) != 0) {
    free(s);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  LIST_INIT(&s->clients);
  s->peers_fd = tk_peers_open();
  tb_mem_init(&s->mem, tb_mem_libc, NULL, MEMORY_MAX);
  rc = serve(s, config, diag);
  close_all(s);
  if (s->peers_fd >= 0) close(s->peers_fd);
  free(s);
  return rc;
}
