/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of one store thread on their way to the loops: in order per loop, kept while a loop's queue
 * is full, cumulative ones joined while they wait.
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TC_MODEL_REPLY_QUEUE_H
#define TC_MODEL_REPLY_QUEUE_H

#include "collector/model/messages.h"

struct tc_reply_queue_item;

struct tc_reply_queue {
  struct tc_store_sink sink;
  enum tc_from from;
  unsigned loops;
  struct tc_reply_queue_item **head, ***tail; /* a queue each loop */
  size_t waiting;
};

/* A place that remembers a waiting reply, so that the next one of its kind can be joined with it. */
struct tc_reply_queue_slot {
  struct tc_reply_queue_item *item;
  uint64_t owed; /* bytes of a RELEASED that found no memory: the next one says them, too */
};

TB_MUST tb_rc tc_reply_queue_init(struct tc_reply_queue *box, struct tc_store_sink sink,
                                  enum tc_from from, unsigned loops);
void tc_reply_queue_fini(struct tc_reply_queue *box); /* frees what waits; accepts a zeroed one */

/* Takes reply, NULL too. False: there was no memory for it or for its place; what must be reported is reported
 * later. */
bool tc_reply_queue_put(struct tc_reply_queue *box, struct tc_reply *reply);

/* ACKED and RELEASED of one connection: slot's waiting reply is raised, or a new one put. False: as above. */
bool tc_reply_queue_acked(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                          uint64_t conn, uint32_t stream, unsigned loop, uint64_t seq);
void tc_reply_queue_released(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                             uint64_t conn, uint32_t stream, unsigned loop, uint64_t bytes);
/* The connection changes: what waits stays as it is, the next reply is a new one. */
void tc_reply_queue_unjoin(struct tc_reply_queue_slot *slot);

void tc_reply_queue_flush(struct tc_reply_queue *box); /* gives the sink what it takes */

#endif
