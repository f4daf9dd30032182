/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the sealer to the loops, and how far streams are settled, for the log. */
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

/* The replies are made by tc_reply_queue_init(). */
void tc__outbox_init(struct tc__outbox *outbox, void (*wake_commit)(void *self), void *self);
void tc__outbox_fini(struct tc__outbox *outbox);

/* NULL: no memory */
struct tc_reply *tc__stream_reply(const struct tc__stream *stream, enum tc_reply_kind kind);
/* The file's i-th generation. */
void tc__offer(struct tc__outbox *outbox, const struct tc__file *file, size_t i, const char *path);
void tc__report_archived(struct tc__outbox *outbox, const struct tc__file *file, const char *path);
void tc__report_lost(struct tc__outbox *outbox, const struct tc__stream *stream,
                     const struct tc__loss *loss, const char *why);
void tc__report_closed(struct tc__outbox *outbox, struct tc__stream *stream);

/* Reports stream->settled to the log. */
TB_MUST tb_rc tc__settle(struct tc__outbox *outbox, struct tc__stream *stream);
/* Room for one more report. */
TB_MUST tb_rc tc__reserve_settled(struct tc__outbox *outbox);

#endif
