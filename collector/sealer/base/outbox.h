/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from the sealer: replies to the loops, and to the commit thread how far streams are settled. */
#ifndef TC_SEALER_BASE_OUTBOX_H
#define TC_SEALER_BASE_OUTBOX_H

#include "collector/base/spsc_queue.h"
#include "collector/model/reply_queue.h"
#include "collector/sealer/base/stream.h"

struct tc__outbox {
  struct tc_reply_queue replies;
  struct {
    struct tc_spsc_queue box;
    struct tc_settled **items; /* not yet posted: the commit thread's queue was full */
    size_t n, cap;
  } settled;
};

/* The caller initializes `replies` with tc_reply_queue_init(). */
void tc__outbox_init(struct tc__outbox *outbox, void (*wake_commit)(void *self), void *self);
void tc__outbox_fini(struct tc__outbox *outbox);

/* Returns NULL if memory cannot be allocated. */
struct tc_reply *tc__stream_reply(const struct tc__stream *stream, enum tc_reply_kind kind);
/* Sends the file's i-th generation to analysis. */
void tc__offer(struct tc__outbox *outbox, const struct tc__file *file, size_t i, const char *path);
void tc__report_archived(struct tc__outbox *outbox, const struct tc__file *file, const char *path);
void tc__report_lost(struct tc__outbox *outbox, const struct tc__stream *stream,
                     const struct tc__loss *loss, const char *why);
void tc__report_closed(struct tc__outbox *outbox, struct tc__stream *stream);

/* Queues stream->settled for the commit thread. */
TB_MUST tb_rc tc__settle(struct tc__outbox *outbox, struct tc__stream *stream);
/* Makes room for one more report in `settled`. */
TB_MUST tb_rc tc__reserve_settled(struct tc__outbox *outbox);

#endif
