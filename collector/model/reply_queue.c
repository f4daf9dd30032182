/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/model/reply_queue.h"

#include <stdlib.h>

struct tc_reply_queue_item {
  struct tc_reply_queue_item *next;
  struct tc_reply *reply;
  struct tc_reply_queue_slot *slot; /* points back here, or NULL */
};

tb_rc tc_reply_queue_init(struct tc_reply_queue *box, struct tc_store_sink sink, enum tc_from from,
                          unsigned loops) {
  *box = (struct tc_reply_queue){ .sink = sink, .from = from, .loops = loops };
  /* One queue more, for the query room, which requests barriers as sender `loops`. */
  box->head = calloc(loops + 1, sizeof *box->head);
  box->tail = calloc(loops + 1, sizeof *box->tail);
  if (box->head == NULL || box->tail == NULL) return TB_NOMEM;
  for (unsigned i = 0; i <= loops; i++) box->tail[i] = &box->head[i];
  return TB_OK;
}

void tc_reply_queue_fini(struct tc_reply_queue *box) {
  for (unsigned i = 0; box->head != NULL && i <= box->loops; i++) {
    while (box->head[i] != NULL) {
      struct tc_reply_queue_item *item = box->head[i];
      box->head[i] = item->next;
      if (item->slot != NULL) item->slot->item = NULL;
      tc_reply_free(item->reply);
      free(item);
    }
  }
  free(box->head);
  free(box->tail);
  *box = (struct tc_reply_queue){ 0 };
}

static bool put_reply(struct tc_reply_queue *box, struct tc_reply *reply,
                      struct tc_reply_queue_slot *slot) {
  if (reply == NULL) return false;
  unsigned loop = reply->loop <= box->loops ? reply->loop : box->loops;
  if (box->head[loop] == NULL && box->sink.reply(box->sink.self, box->from, reply)) return true;
  struct tc_reply_queue_item *item = calloc(1, sizeof *item);
  if (item == NULL) {
    tc_reply_free(reply);
    return false;
  }
  item->reply = reply;
  item->slot = slot;
  if (slot != NULL) slot->item = item;
  *box->tail[loop] = item;
  box->tail[loop] = &item->next;
  box->waiting++;
  return true;
}

bool tc_reply_queue_put(struct tc_reply_queue *box, struct tc_reply *reply) {
  return put_reply(box, reply, NULL);
}

bool tc_reply_queue_acked(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                          uint64_t conn, uint32_t stream, unsigned loop, uint64_t seq) {
  if (slot->item != NULL) {
    slot->item->reply->seq = seq;
    return true;
  }
  struct tc_reply *reply = tc_reply_new(TC_REPLY_ACKED, conn, stream, loop);
  if (reply != NULL) reply->seq = seq;
  return put_reply(box, reply, slot);
}

void tc_reply_queue_released(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                             uint64_t conn, uint32_t stream, unsigned loop, uint64_t bytes) {
  bytes += slot->owed;
  slot->owed = 0;
  if (slot->item != NULL) {
    slot->item->reply->released += bytes;
    return;
  }
  struct tc_reply *reply = tc_reply_new(TC_REPLY_RELEASED, conn, stream, loop);
  if (reply != NULL) reply->released = bytes;
  if (!put_reply(box, reply, slot)) slot->owed = bytes;
}

void tc_reply_queue_unjoin(struct tc_reply_queue_slot *slot) {
  if (slot->item != NULL) slot->item->slot = NULL;
  slot->item = NULL;
  slot->owed = 0;
}

static void flush_loop(struct tc_reply_queue *box, unsigned loop) {
  while (box->head[loop] != NULL) {
    struct tc_reply_queue_item *item = box->head[loop];
    if (!box->sink.reply(box->sink.self, box->from, item->reply)) return;
    if (item->slot != NULL) item->slot->item = NULL;
    box->head[loop] = item->next;
    if (item->next == NULL) box->tail[loop] = &box->head[loop];
    box->waiting--;
    free(item);
  }
}

void tc_reply_queue_flush(struct tc_reply_queue *box) {
  if (box->waiting == 0) return;
  for (unsigned loop = 0; loop <= box->loops; loop++) flush_loop(box, loop);
}
