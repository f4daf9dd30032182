/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TK_PAGE_PRIVATE_H
#define TK_PAGE_PRIVATE_H

#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "tools/tracectl/page/guard.h"
#include "tools/tracectl/page/page.h"
#include "tools/tracectl/page/peer.h"
#include "tools/tracectl/page/upstream.h"

enum {
  TK__HEAD_BYTES_MAX = 32 << 10,
  TK__COOKIE_BYTES_MAX = 8 << 10, /* a browser sends those of every port of this host */
  TK__BODY_BYTES_MAX = 1 << 20,
  TK__INPUT_BYTES = 16 << 10,
};

struct tk__server;

/* One connection of a browser. */
struct tk__client {
  struct tk__server *server;
  LIST_ENTRY(tk__client) all;
  uv_tcp_t tcp;
  uint64_t deadline_ms;       /* 0: none, a question is being answered */
  bool busy, ending, closing; /* ending: nothing more is answered; closing: the handle is */
  struct tc_http_head head;
  char cookies[TK__COOKIE_BYTES_MAX + 1];
  unsigned char input[TK__INPUT_BYTES];
  size_t input_len;
  bool is_reading, has_begun; /* bytes of the next head have come */
  unsigned char *body;
  size_t body_len, body_left;
  /* the answer that is passed on */
  struct tk_relay *relay;
  struct tb_buf fields; /* those of its head */
  bool has_head, is_chunked, knows_length, is_held;
  uint64_t left; /* of its Content-Length */
  size_t queued; /* bytes that the kernel has not taken */
};

struct tk__server {
  uv_loop_t loop;
  uv_tcp_t listener;
  uv_timer_t sweep;
  uv_signal_t signals[3];
  uv_pipe_t input; /* standard input, if it is a pipe */
  bool closing;
  struct tk_guard guard;
  struct tk_upstream *upstream;
  struct tb_mem mem;
  LIST_HEAD(, tk__client) clients;
  int peers_fd;                  /* -1: unknown whose clients are */
  unsigned n_clients, n_closing; /* in the list; those whose handles are closing */
};

/* client.c */
void tk__client_accept(struct tk__server *server);
void tk__client_close(struct tk__client *c);
void tk__client_send(struct tk__client *c, const void *bytes, size_t n);
void tk__client_done(struct tk__client *c); /* an answer has been sent */
void tk__client_turn(struct tk__client *c); /* goes on with what has been received */

/* answer.c: whole answers of our own */
void tk__answer_refuse(struct tk__client *c, int status, const char *why);
void tk__answer_welcome(struct tk__client *c);
void tk__answer_no_collector(struct tk__client *c, const char *why);

/* relay.c */
void tk__relay_begin(struct tk__client *c);

#endif
