/* SPDX-License-Identifier: Apache-2.0 */
/* Replies from one store thread to the loops: in order per loop, kept while a loop's queue is full. Waiting ACKED and RELEASED
 * replies of a connection are merged.
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
  struct tc_reply_queue_item **head, ***tail; /* a queue for each loop */
  size_t waiting;
};

/* Remembers a connection's waiting reply, so that the next one of its kind can be merged with it. */
struct tc_reply_queue_slot {
  struct tc_reply_queue_item *item;
  uint64_t owed; /* bytes of a RELEASED that could not be allocated: added to the next one */
};

TB_MUST tb_rc tc_reply_queue_init(struct tc_reply_queue *box, struct tc_store_sink sink,
                                  enum tc_from from, unsigned loops);
void tc_reply_queue_fini(struct tc_reply_queue *box); /* accepts a zeroed one */

/* Takes ownership of reply. Returns false if reply is NULL or memory cannot be allocated: the caller must send a required
 * reply again later. */
bool tc_reply_queue_put(struct tc_reply_queue *box, struct tc_reply *reply);

/* Put ACKED or RELEASED of one connection, merged with the slot's waiting reply if there is one. Returns false as above. */
bool tc_reply_queue_acked(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                          uint64_t conn, uint32_t stream, unsigned loop, uint64_t seq);
void tc_reply_queue_released(struct tc_reply_queue *box, struct tc_reply_queue_slot *slot,
                             uint64_t conn, uint32_t stream, unsigned loop, uint64_t bytes);
/* Ends merging, for a change of the connection: the next reply is a new one. */
void tc_reply_queue_unjoin(struct tc_reply_queue_slot *slot);

void tc_reply_queue_flush(struct tc_reply_queue *box); /* sends as much as the sink accepts */

#endif
