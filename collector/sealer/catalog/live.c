/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/catalog/live.h"

#include <stdio.h>
#include <string.h>

enum { LIVE_ROWS_AT_ONCE = 1000 };

static const char *state_of(const struct tc__stream *stream) {
  static const char *const ended[] = { "waiting", "closed", "exec", "unclean" };

  return stream->conn != 0 ? "live" : ended[stream->end];
}

static tb_rc write_live_rows(struct tc__catalog_sync *sync, struct tc__streams *streams,
                             struct tb_diag *diag) {
  for (size_t i = 0; i < LIVE_ROWS_AT_ONCE && streams->live.first != NULL; i++) {
    struct tc__stream *stream = streams->live.first;
    struct tc_stream_row row = { .go_version = stream->go_version,
                                 .acked_seq = stream->last_seq,
                                 .produced_batches = stream->counters.produced_batches,
                                 .produced_bytes = stream->counters.produced_bytes,
                                 .spool_bytes = stream->counters.spool_bytes,
                                 .last_loss = stream->counters.last_loss,
                                 .cut = stream->cut };
    memcpy(row.stream, stream->id, sizeof row.stream);
    memcpy(row.service, stream->service, sizeof row.service);
    memcpy(row.instance, stream->instance, sizeof row.instance);
    snprintf(row.identity, sizeof row.identity, "%s", stream->identity);
    memcpy(row.peer, stream->peer, sizeof row.peer);
    snprintf(row.state, sizeof row.state, "%s", state_of(stream));
    TB_TRY(tc_catalog_put_live(sync->db, &row, diag));
    streams->live.first = stream->live_next;
    if (streams->live.first == NULL) streams->live.tail = &streams->live.first;
    stream->live_dirty = false;
  }
  return TB_OK;
}

void tc__flush_live(struct tc__catalog_sync *sync, struct tc__streams *streams) {
  struct tb_diag diag = { 0 }, words = { 0 };

  if (streams->live.first == NULL || sync->db == NULL) return;
  tb_rc rc = tc_catalog_begin(sync->db, &diag);
  if (rc == TB_OK) rc = write_live_rows(sync, streams, &diag);
  if (rc == TB_OK) rc = tc_catalog_commit(sync->db, &diag);
  if (rc == TB_CORRUPT) (void)!tc__catalog_failed(sync, &diag, &words);
  if (rc != TB_OK) tc_catalog_rollback(sync->db);
}
