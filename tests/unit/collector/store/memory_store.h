/* SPDX-License-Identifier: Apache-2.0 */
/* A store for tests of what stands on its left: it keeps nothing but sequence numbers, and answers as
 * collector/store/store.h says when it is asked to.
 *
 * Threads   submit on the loop's thread; answers come out of memory_store_answer(), same thread.
 */
#ifndef TT_UNIT_STORE_MEMORY_STORE_H
#define TT_UNIT_STORE_MEMORY_STORE_H

#include <stdatomic.h>

#include "collector/store/store.h"

enum { MEMORY_STREAMS = 16, MEMORY_REPLIES = 4096 };

struct memory_store {
  struct {
    unsigned char id[TC_STREAM_BYTES];
    uint64_t durable_seq, writer;
    bool used;
  } streams[MEMORY_STREAMS];
  struct tc_reply *replies[MEMORY_REPLIES];
  size_t reply_first, reply_count;
  atomic_bool full;   /* submit returns false */
  atomic_bool silent; /* nothing is acked or released */
  atomic_ullong records, bytes, detaches, heartbeats;
};

bool memory_store_submit(void *self, struct tc_submit *msg);
struct tc_reply *memory_store_answer(struct memory_store *store); /* NULL: none */

#endif
