/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/generation_time.h"
#include "base/grow.h"

void tc__outbox_init(struct tc__outbox *outbox, void (*wake_commit)(void *self), void *self) {
  tc_spsc_queue_init(&outbox->settled.box, wake_commit, self);
}

void tc__outbox_fini(struct tc__outbox *outbox) {
  for (struct tc_settled *settled; (settled = tc_spsc_queue_take(&outbox->settled.box)) != NULL;)
    tc_settled_free(settled);
  for (size_t i = 0; i < outbox->settled.n; i++) tc_settled_free(outbox->settled.items[i]);
  free(outbox->settled.items);
  tc_reply_queue_fini(&outbox->replies);
}

struct tc_reply *tc__stream_reply(const struct tc__stream *stream, enum tc_reply_kind kind) {
  struct tc_reply *reply = tc_reply_new(kind, 0, stream->ref, stream->home);

  if (reply == NULL) return NULL;
  memcpy(reply->service, stream->service, sizeof reply->service);
  memcpy(reply->instance, stream->instance, sizeof reply->instance);
  memcpy(reply->stream_id, stream->id, sizeof reply->stream_id);
  return reply;
}

void tc__offer(struct tc__outbox *outbox, const struct tc__file *file, size_t i, const char *path) {
  const struct tc_segment *segment = file->segment;
  const struct tc_segment_gen *gen = &segment->gens[i];
  struct tc_reply *reply = tc__stream_reply(file->stream, TC_REPLY_STORED);

  if (reply == NULL) return; /* the verdict stays pending; the next start offers it again */
  reply->gen = gen->gen;
  reply->new_run = (file->new_run && i == 0) || file->stream->resumed;
  file->stream->resumed = false;
  file->stream->begun = true;
  reply->offset = gen->offset;
  reply->len = gen->bytes;
  struct tc_wall wall = tc_segment_gen_wall(gen);
  reply->first_wall_ns = wall.first_ns;
  reply->end_wall_ns = wall.last_ns;
  snprintf(reply->path, sizeof reply->path, "%s", path);
  tc__archive_path(file->day, file->stream->hex, segment->first_gen, reply->final_path);
  tc_reply_queue_put(&outbox->replies, reply);
}

void tc__report_archived(struct tc__outbox *outbox, const struct tc__file *file, const char *path) {
  const struct tc_segment *segment = file->segment;
  const struct tc_segment_gen *last = &segment->gens[segment->ngens - 1];
  struct tc_reply *reply = tc__stream_reply(file->stream, TC_REPLY_ARCHIVED);

  if (reply == NULL) return; /* only the feed misses a message */
  reply->gen = segment->first_gen;
  reply->last_gen = last->gen;
  reply->bytes = segment->bytes;
  reply->first_wall_ns = tc_segment_gen_wall(&segment->gens[0]).first_ns;
  reply->end_wall_ns = tc_segment_gen_wall(last).last_ns;
  snprintf(reply->path, sizeof reply->path, "%s", path);
  tc_reply_queue_put(&outbox->replies, reply);
}

void tc__report_lost(struct tc__outbox *outbox, const struct tc__stream *stream,
                     const struct tc__loss *loss, const char *why) {
  struct tc_reply *reply = tc__stream_reply(stream, TC_REPLY_LOST);

  if (reply == NULL) return; /* only the feed misses a message */
  reply->gen = loss->first_gen;
  reply->last_gen = loss->last_gen;
  reply->batches = loss->batches;
  reply->bytes = loss->bytes;
  reply->loss_code = loss->reason;
  snprintf(reply->loss_text, sizeof reply->loss_text, "%s", why);
  tc_reply_queue_put(&outbox->replies, reply);
}

void tc__report_closed(struct tc__outbox *outbox, struct tc__stream *stream) {
  struct tc_reply *reply = tc__stream_reply(stream, TC_REPLY_STORED);

  if (reply == NULL) return;
  reply->stream_closed = true;
  tc_reply_queue_put(&outbox->replies, reply);
}

tb_rc tc__reserve_settled(struct tc__outbox *outbox) {
  return TB_GROW(outbox->settled.items, outbox->settled.cap, outbox->settled.n);
}

tb_rc tc__settle(struct tc__outbox *outbox, struct tc__stream *stream) {
  TB_TRY(tc__reserve_settled(outbox));
  struct tc_settled *settled = malloc(sizeof *settled);
  if (settled == NULL) return TB_NOMEM;
  *settled = stream->settled;
  outbox->settled.items[outbox->settled.n++] = settled;
  return TB_OK;
}
