/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/collector/store/memory_store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/frame.pb-c.h"

static struct tc_reply *answer(struct memory_store *store, enum tc_reply_kind kind,
                               const struct tc_submit *to) {
  struct tc_reply *reply = tc_reply_new(kind, to->conn, 0, to->loop);

  assert(reply != NULL && store->reply_count < MEMORY_REPLIES);
  store->replies[(store->reply_first + store->reply_count++) % MEMORY_REPLIES] = reply;
  return reply;
}

static void attach(struct memory_store *store, const struct tc_submit *msg) {
  struct tc_reply *reply;
  uint32_t i = 0;

  if (strcmp(msg->attach.service, "forbidden") == 0) {
    reply = answer(store, TC_REPLY_REFUSED, msg);
    reply->code = TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY;
    snprintf(reply->text, sizeof reply->text, "the stream belongs to another");
    return;
  }
  while (store->streams[i].used &&
         memcmp(store->streams[i].id, msg->attach.stream, TC_STREAM_BYTES) != 0)
    i++;
  assert(i < MEMORY_STREAMS);
  if (store->streams[i].writer != 0) {
    struct tc_submit old = { .conn = store->streams[i].writer, .loop = msg->loop };

    answer(store, TC_REPLY_SUPERSEDED, &old);
  }
  store->streams[i].used = true;
  store->streams[i].writer = msg->conn;
  memcpy(store->streams[i].id, msg->attach.stream, TC_STREAM_BYTES);
  reply = answer(store, TC_REPLY_ATTACHED, msg);
  reply->stream = i;
  reply->seq = store->streams[i].durable_seq;
}

static void take(struct memory_store *store, const struct tc_submit *msg) {
  const struct tc_record *record = msg->record;
  struct tc_reply *reply;

  assert(record->seq == store->streams[record->stream].durable_seq + 1);
  store->streams[record->stream].durable_seq = record->seq;
  atomic_fetch_add(&store->records, 1);
  atomic_fetch_add(&store->bytes, record->len);
  if (store->silent) return;
  reply = answer(store, TC_REPLY_ACKED, msg);
  reply->seq = record->seq;
  reply = answer(store, TC_REPLY_RELEASED, msg);
  reply->released = (uint64_t)TP_HEADER_BYTES + record->len;
}

bool memory_store_submit(void *self, struct tc_submit *msg) {
  struct memory_store *store = self;

  if (store->full) return false;
  switch (msg->kind) {
  case TC_SUBMIT_ATTACH: attach(store, msg); break;
  case TC_SUBMIT_RECORD: take(store, msg); break;
  case TC_SUBMIT_DETACH: atomic_fetch_add(&store->detaches, 1); break;
  case TC_SUBMIT_HEARTBEAT: atomic_fetch_add(&store->heartbeats, 1); break;
  default: break;
  }
  tc_submit_free(msg);
  return true;
}

struct tc_reply *memory_store_answer(struct memory_store *store) {
  struct tc_reply *reply;

  if (store->reply_count == 0) return NULL;
  reply = store->replies[store->reply_first];
  store->reply_first = (store->reply_first + 1) % MEMORY_REPLIES;
  store->reply_count--;
  return reply;
}
