/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/model/messages.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct tc_submit *tc_submit_new(enum tc_submit_kind kind) {
  struct tc_submit *msg = calloc(1, sizeof *msg);

  if (msg == NULL) return NULL;
  msg->kind = kind;
  msg->magic = TC_SUBMIT_MAGIC;
  return msg;
}

void tc_submit_free(struct tc_submit *msg) {
  if (msg == NULL) return;
  TB_MAGIC_END(msg, TC_SUBMIT_MAGIC);
  if (msg->kind == TC_SUBMIT_RECORD && msg->record != NULL) msg->record->free(msg->record);
  free(msg);
}

#define END_OF(member) (offsetof(struct tc_reply, member) + sizeof((struct tc_reply *)0)->member)

size_t tc_reply_bytes(enum tc_reply_kind kind) {
  switch (kind) {
  case TC_REPLY_REFUSED:
  case TC_REPLY_FAILED: return END_OF(text);
  case TC_REPLY_STORED:
  case TC_REPLY_ARCHIVED:
  case TC_REPLY_LOST: return sizeof(struct tc_reply);
  default: return END_OF(seq);
  }
}

struct tc_reply *tc_reply_new(enum tc_reply_kind kind, uint64_t conn, uint32_t stream,
                              unsigned loop) {
  struct tc_reply *reply = calloc(1, tc_reply_bytes(kind));

  if (reply == NULL) return NULL;
  reply->kind = kind;
  reply->conn = conn;
  reply->stream = stream;
  reply->loop = loop;
  reply->magic = TC_REPLY_MAGIC;
  return reply;
}

void tc_reply_free(struct tc_reply *reply) {
  if (reply == NULL) return;
  TB_MAGIC_END(reply, TC_REPLY_MAGIC);
  free(reply);
}

void tc_store_note_at(const struct tc_store_sink *sink, struct tc_log_site *site,
                      enum tc_level level, uint32_t ref, const char *fmt, ...) {
  char text[512];
  va_list args;

  if (sink->note == NULL) return;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  sink->note(sink->self, &(struct tc_note){ site, level, ref, fmt, text });
}
