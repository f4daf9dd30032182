/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/certs.h"

static void must(bool done, const char *what) {
  if (done) return;
  perror(what);
  abort();
}

static void nothing(void *self) {
  (void)self;
}

static void no_message(void *self, enum tc_loop_sender from, void *msg) {
  (void)self;
  (void)from;
  (void)msg;
}

void tt_tls_host_open(struct tt_tls_host *host, struct tc_loop_handler handler) {
  if (handler.message == NULL) handler.message = no_message;
  if (handler.drained == NULL) handler.drained = nothing;
  if (handler.tick == NULL) handler.tick = nothing;
  strcpy(host->dir, "/tmp/tt_host_XXXXXX");
  must(mkdtemp(host->dir) != NULL, host->dir);
  tt_certs_make(host->dir);
  must(tc_loop_open(&host->loop, 10, handler) == TB_OK, "a loop");
  tc_tls_loop_init(&host->tls, &host->loop.uv);
}

void tt_tls_host_start(struct tt_tls_host *host) {
  must(tc_loop_start(&host->loop) == TB_OK, "a thread");
}

static void drop(enum tc_loop_sender from, void *msg) {
  (void)from;
  (void)msg;
}

void tt_tls_host_end(struct tt_tls_host *host) {
  char command[128];

  tc_loop_stop(&host->loop);
  tc_loop_join(&host->loop, drop);
  snprintf(command, sizeof command, "rm -r %s", host->dir);
  must(system(command) == 0, command);
}
