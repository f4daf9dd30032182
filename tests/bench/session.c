/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

void session_fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
  exit(1);
}

static void read_trace(struct session *s, const char *path) {
  FILE *file = fopen(path, "rb");

  if (file == NULL || fseek(file, 0, SEEK_END) != 0) session_fail(path, "cannot be read");
  s->n = (size_t)ftell(file);
  rewind(file);
  s->bytes = malloc(s->n);
  if (s->bytes == NULL || fread(s->bytes, 1, s->n, file) != s->n)
    session_fail(path, "cannot be read");
  fclose(file);
}

/* Polls: before the first record there is no event to wait for. */
static void wait_for_stream(ta_forward *f) {
  struct ta_forward_status status = { .size = sizeof status };

  for (int i = 0; i < SESSION_WAIT_MS && status.state != TA_STATE_STREAMING; i++) {
    poll(NULL, 0, 1);
    if (ta_forward_status(f, &status) != TA_OK) session_fail("status", "off");
  }
  if (status.state != TA_STATE_STREAMING) session_fail("connecting", status.last_error);
}

void session_open(struct session *s, const char *server, const char *certs, const char *trace) {
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = server,
                                      .certs = certs,
                                      .service = "bench",
                                      .spool_bytes = SESSION_SPOOL_BYTES };

  *s = (struct session){ 0 };
  read_trace(s, trace);
  tb_mem_init(&s->mem, tb_mem_libc, NULL, 1 << 20);
  tw_split_init(&s->split, &s->mem);
  int error = ta_forward_open(&config, &s->forward);
  if (error != TA_OK) session_fail("open", ta_strerror(error));
  wait_for_stream(s->forward);
}

void session_close(struct session *s) {
  int error = ta_forward_close(s->forward, SESSION_WAIT_MS);

  if (error != TA_OK) session_fail("close", ta_strerror(error));
  tw_split_fini(&s->split);
  free(s->bytes);
}

bool session_next(struct session *s, struct tw_item *out) {
  size_t used;

  if (tw_split_feed(&s->split, s->bytes + s->at, s->n - s->at, &used, out) != TB_OK) return false;
  if (out->kind == TW_ITEM_RAW) session_fail("the trace", s->split.fault.text);
  s->at += used;
  return true;
}

void session_wait_for_room(struct session *s, uint64_t bytes) {
  struct ta_forward_status status = { .size = sizeof status };

  for (int ms = 0; ms < SESSION_WAIT_MS; ms++) {
    if (ta_forward_status(s->forward, &status) != TA_OK) session_fail("status", "off");
    if (status.lost_bytes > 0) session_fail("nothing is measured", "the spool dropped some");
    if (status.spool_bytes <= bytes) return;
    poll(NULL, 0, 1);
  }
  session_fail("waiting for acks", status.last_error);
}
