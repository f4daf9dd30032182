/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/stream.h"

#include "collector/sealer/private.h"

struct tc__stream *tc__sealer_stream(struct tc_sealer *sealer, uint32_t ref) {
  return tb_map_at(&sealer->by_ref, ref);
}

void tc__mark_live(struct tc_sealer *sealer, struct tc__stream *stream) {
  if (stream->live_dirty) return;
  stream->live_dirty = true;
  stream->live_next = NULL;
  *sealer->live.tail = stream;
  sealer->live.tail = &stream->live_next;
}

const char *tc__stream_check(const struct tc__stream *stream) {
  const struct tc__file *open = stream->open, *queued = stream->queued;

  if (open != NULL && (open->state != TC__FILE_IS_OPEN || open->stream != stream))
    return "it writes a file that is not open";
  if (queued != NULL && queued->state == TC__FILE_IS_OPEN) return "an open file is in the queue";
  if (open != NULL && stream->end != TC__GOES_ON) return "it has ended, and a file is open";
  if (stream->settled.seq > stream->last_seq) return "more is settled than has come";
  return open != NULL ? tc__file_check(open) : NULL;
}
