/* SPDX-License-Identifier: Apache-2.0 */
/* Making and unmaking the sealer, and the streams it knows. The thread is in thread.c. */
#include "collector/sealer/sealer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/sealer/private.h"

enum {
  LIVE_ROWS_AT_ONCE = 1000,
  DESCRIPTORS_PART =
      4, /* of those the system gives us, as many as this part of them are for segments */
  DESCRIPTORS_MAX = 16384,
};

/* ---- lifecycle */

static tb_rc set_up(struct tc_sealer *sealer, struct tb_diag *diag) {
  sealer->hash_kind = tc_hash_of_name(sealer->opt.config->archive_hash);
  TB_TRY(tc_keys_read_signer(sealer->opt.config->archive_sign, diag, &sealer->signer));
  TB_TRY(tc_wakeup_init(&sealer->wakeup, diag));
  if (tc_reply_queue_init(&sealer->replies, sealer->opt.sink, TC_FROM_SEGMENT, sealer->opt.loops) !=
      TB_OK)
    return tb_fail(diag, TB_NOMEM, "archive: no memory");
  return tc__catalog_open(sealer, diag);
}

static size_t descriptors_max(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return DESCRIPTORS_MAX;
  uint64_t part = limit.rlim_cur / DESCRIPTORS_PART;
  return part == 0 ? 1 : part < DESCRIPTORS_MAX ? (size_t)part : DESCRIPTORS_MAX;
}

tb_rc tc_sealer_new(const struct tc_sealer_options *options, struct tb_diag *diag,
                    struct tc_sealer **out) {
  struct tc_sealer *sealer = calloc(1, sizeof *sealer);

  if (sealer == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
  sealer->opt = *options;
  sealer->wakeup.fd = -1;
  pthread_mutex_init(&sealer->show.lock, NULL);
  tc_cond_init(&sealer->show.is_done);
  tb_mem_init(&sealer->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&sealer->by_ref, &sealer->mem, 0x9e3779b97f4a7c15u); /* refs are ours */
  tc__queue_init(&sealer->queue);
  sealer->to_amend.tail = &sealer->to_amend.first;
  sealer->live.tail = &sealer->live.first;
  sealer->work.tail = &sealer->work.first;
  sealer->work.barriers_tail = &sealer->work.barriers;
  tc_spsc_queue_init(&sealer->inbox, tc_wakeup_wake, &sealer->wakeup);
  tc_spsc_queue_init(&sealer->settled.box, options->wake_commit, options->wake_self);
  sealer->quarantine.changed = true; /* what earlier runs left */
  tc_descriptors_init(&sealer->descriptors, descriptors_max());
  tc_reserve_init(&sealer->reserve, options->dirs->state, options->config->disk_reserve_bytes);
  tc_retention_init(&sealer->retaining.pace, tc_wall_ns(), tc_mono_ns());
  tb_rc rc = set_up(sealer, diag);
  if (rc != TB_OK) {
    tc_sealer_free(sealer);
    return rc;
  }
  *out = sealer;
  return TB_OK;
}

static void free_stream(struct tc_sealer *sealer, struct tc__stream *stream) {
  tc_reply_queue_unjoin(&stream->released);
  while (stream->recents != NULL) tc__recent_drop(stream, stream->recents);
  tb_map_fini(&stream->recent_of_gen);
  /* Its bytes are in the log; recovery assembles the file again. */
  if (stream->open != NULL && !stream->open->checkpointed)
    unlinkat(sealer->opt.dirs->open, stream->open->segment->name, 0);
  tc__file_free(stream->open);
  tc__losses_fini(&stream->losses);
  tc__losses_fini(&stream->reported.losses);
  free(stream);
}

static void free_chain(struct tc_work *work) {
  for (struct tc_work *next; work != NULL; work = next) {
    next = work->next;
    tc_work_free(work);
  }
}

void tc_sealer_free(struct tc_sealer *sealer) {
  if (sealer == NULL) return;
  for (struct tc_work *chain; (chain = tc_spsc_queue_take(&sealer->inbox)) != NULL;)
    free_chain(chain);
  free_chain(sealer->work.first);
  free_chain(sealer->work.barriers);
  for (struct tc_settled *settled; (settled = tc_spsc_queue_take(&sealer->settled.box)) != NULL;)
    tc_settled_free(settled);
  for (size_t i = 0; i < sealer->settled.n; i++) tc_settled_free(sealer->settled.items[i]);
  free(sealer->settled.items);
  tc__queue_fini(&sealer->queue);
  tc__round_free(sealer->retaining.round);
  tc__quarantine_free(&sealer->quarantine);
  tc_reply_queue_fini(&sealer->replies);
  for (struct tc__stream *stream = sealer->streams, *next; stream != NULL; stream = next) {
    next = stream->next;
    free_stream(sealer, stream);
  }
  tb_map_fini(&sealer->by_ref);
  free(sealer->dirty.items);
  tc__folding_fini(&sealer->folding);
  tc__catalog_close(&sealer->catalog);
  tc_keys_free(sealer->signer);
  tc_wakeup_fini(&sealer->wakeup);
  pthread_cond_destroy(&sealer->show.is_done);
  pthread_mutex_destroy(&sealer->show.lock);
  free(sealer);
}

/* ---- streams */

tb_rc tc_sealer_add_stream(struct tc_sealer *sealer, const struct tc_stream_intro *intro,
                           struct tb_diag *diag) {
  struct tc__stream *stream = calloc(1, sizeof *stream);
  uint64_t *slot;

  if (stream == NULL || tb_map_put(&sealer->by_ref, intro->ref, &slot, NULL) != TB_OK) {
    free(stream);
    return tb_fail(diag, TB_NOMEM, "archive: no memory for a stream");
  }
  *slot = (uint64_t)(uintptr_t)stream;
  stream->next = sealer->streams;
  if (stream->next != NULL) stream->next->at = &stream->next;
  stream->at = &sealer->streams;
  sealer->streams = stream;
  stream->ref = intro->ref;
  stream->home = intro->home;
  memcpy(stream->id, intro->id, sizeof stream->id);
  tb_hex(intro->id, sizeof intro->id, stream->hex);
  memcpy(stream->identity, intro->identity, sizeof stream->identity);
  memcpy(stream->service, intro->service, sizeof stream->service);
  memcpy(stream->instance, intro->instance, sizeof stream->instance);
  memcpy(stream->header, intro->header, sizeof stream->header);
  stream->header_len = intro->header_len;
  stream->go_version = tc_go_version(intro->header, intro->header_len);
  stream->settled = intro->settled;
  stream->settled.stream = intro->ref;
  stream->abandoned_gen = intro->settled.abandoned_gen;
  stream->last_gen = intro->settled.last_gen;
  stream->last_seq = intro->settled.seq;
  tb_map_init(&stream->recent_of_gen, &sealer->mem, tb_seed());
  tc_count(&sealer->opt.stats->streams, 1);
  return TB_OK;
}

void tc__forget_stream(struct tc_sealer *sealer, struct tc__stream *stream) {
  struct tc__stream **at = &sealer->live.first;

  if (stream->open != NULL || stream->queued != NULL || stream->recents != NULL)
    return; /* it has no writer; kept until the next start */
  while (*at != NULL && *at != stream) at = &(*at)->live_next;
  if (*at == stream) {
    *at = stream->live_next;
    if (stream->live_next == NULL) sealer->live.tail = at;
  }
  tb_map_remove(&sealer->by_ref, stream->ref);
  *stream->at = stream->next;
  if (stream->next != NULL) stream->next->at = stream->at;
  tc_count(&sealer->opt.stats->streams, (uint64_t)-1);
  free_stream(sealer, stream);
}

static const char *state_of(const struct tc__stream *stream) {
  static const char *const ended[] = { "waiting", "closed", "exec", "unclean" };

  return stream->conn != 0 ? "live" : ended[stream->end];
}

static tb_rc write_live_rows(struct tc_sealer *sealer, struct tb_diag *diag) {
  for (size_t i = 0; i < LIVE_ROWS_AT_ONCE && sealer->live.first != NULL; i++) {
    struct tc__stream *stream = sealer->live.first;
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
    TB_TRY(tc_catalog_put_live(sealer->catalog.db, &row, diag));
    sealer->live.first = stream->live_next;
    if (sealer->live.first == NULL) sealer->live.tail = &sealer->live.first;
    stream->live_dirty = false;
  }
  return TB_OK;
}

void tc__flush_live(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 }, words = { 0 };

  if (sealer->live.first == NULL || sealer->catalog.db == NULL) return;
  tb_rc rc = tc_catalog_begin(sealer->catalog.db, &diag);
  if (rc == TB_OK) rc = write_live_rows(sealer, &diag);
  if (rc == TB_OK) rc = tc_catalog_commit(sealer->catalog.db, &diag);
  if (rc == TB_CORRUPT) (void)!tc__catalog_failed(sealer, &diag, &words);
  if (rc != TB_OK) tc_catalog_rollback(sealer->catalog.db);
}
