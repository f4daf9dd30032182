/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 server for what machines ask: /metrics and /healthz.
 *
 * GET and HEAD only, a head of at most 8 KiB, no body, one request a connection, five seconds for it.
 * On loopback it is plain and answers only to names of this host (a page elsewhere must not reach it
 * through a name of its own: DNS rebinding). On any other address it is TLS, and all but /healthz wants
 * a reader certificate.
 *
 * Memory    a connection keeps its head; answers are as large as they are.
 * Threads   all calls on the loop's thread.
 * Errors    open: TB_IO with the address in diag; TB_CORRUPT: certificates.
 */
#ifndef TC_HTTP_H
#define TC_HTTP_H

#include "collector/tls.h"

struct tc_http_source {
  void *self;
  tb_rc (*metrics)(void *self, struct tb_buf *out);
  const char *(*unhealthy)(void *self); /* NULL: all is well; else why not */
};

struct tc_http_env {
  struct tc_tls_loop *tls;
  const char *address; /* HOST:PORT */
  const char *certs;   /* folder; used where address is not loopback */
  size_t requests_max; /* connections at once */
  struct tc_http_source source;
  int socket;          /* listens on address already: owned; 0: to be opened */
};

struct tc_http;

TB_MUST tb_rc tc_http_open(const struct tc_http_env *env, struct tb_diag *diag,
                           struct tc_http **out);
TB_MUST tb_rc tc_http_reload(struct tc_http *http, struct tb_diag *diag); /* certificates */
void tc_http_tick(struct tc_http *http);
/* Ends all connections; free() after the loop's last turn. NULL is fine for both. */
void tc_http_close(struct tc_http *http);
void tc_http_free(struct tc_http *http);

const char *tc_http_address(const struct tc_http *http);

#endif
