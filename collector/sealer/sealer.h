/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer: durable records become segment files, metas and rows of the catalog.
 *
 *     work (in order, from the commit thread) ──> .part ──> whole generations ──> STORED to the stream's home
 *     loop ──> published in batches: sync, meta, rename, sync folders, catalog ──> SETTLED to the log, ARCHIVED
 *
 * Recovery uses the same object on the starting thread, before tc_sealer_start(): it adds the streams and records of
 * the log. The thread then publishes the generations that are whole.
 *
 * Memory    the sealer owns posted work; the reply RELEASED reports that records were freed.
 * Threads   one of its own after start; post() and take_settled() are called by the commit thread.
 * Errors    after any error the work is tried again: nothing durable is dropped. A full disk and a shortage of
 *           descriptors are waited for. Other errors are reported once by TC_REPLY_FAILED, a shortage of memory
 *           only after half a minute.
 */
#ifndef TC_SEALER_SEALER_H
#define TC_SEALER_SEALER_H

#include "collector/sealer/base/env.h"
#include "collector/sealer/base/work.h"

struct tc_sealer;

TB_MUST tb_rc tc_sealer_new(const struct tc_sealer_options *options, struct tb_diag *diag,
                            struct tc_sealer **out);
TB_MUST tb_rc tc_sealer_start(struct tc_sealer *sealer, struct tb_diag *diag);
/* Does the posted work, publishes whole generations and ends the thread. The caller must not post any more. The log keeps
 * work that is not done at the deadline for the next start; 0: no deadline. */
void tc_sealer_stop(struct tc_sealer *sealer, uint64_t deadline_mono_ns);
/* Sets the deadline before the caller stops posting: no work is begun after it. */
void tc_sealer_set_deadline(struct tc_sealer *sealer, uint64_t mono_ns);
void tc_sealer_free(struct tc_sealer *sealer);

/* Posts a chain of work in order. Returns false if the queue is full; the caller then still owns the chain. */
bool tc_sealer_post(struct tc_sealer *sealer, struct tc_work *chain);
struct tc_settled *tc_sealer_take_settled(struct tc_sealer *sealer); /* NULL: none */
/* Waits until the catalog shows the current state of the open runs, for at most a second (a sealer that is busy or waits
 * for the disk does it later). Any thread, while the sealer runs. */
void tc_sealer_show_runs(struct tc_sealer *sealer);

/* ---- recovery, before start */
TB_MUST tb_rc tc_sealer_add_stream(struct tc_sealer *sealer, const struct tc_stream_intro *intro,
                                   struct tb_diag *diag);
/* Resumes the open file of a checkpoint (LogCheckpoint, packed). If the file does not match the checkpoint, its generations
 * are reported as lost. Either way the stream's records up to the checkpoint's need no replay. *out_skip_to: as of
 * tc_sealer_replay(). TB_BROKEN: the checkpoint does not parse; nothing was done. */
TB_MUST tb_rc tc_sealer_resume(struct tc_sealer *sealer, uint32_t stream,
                               const unsigned char *packed, size_t len, struct tb_diag *diag,
                               uint64_t *out_skip_to);
/* Logs a loss: of the records up to seq, some were only in this checkpoint's file, and are lost. */
void tc_sealer_note_checkpoint_lost(struct tc_sealer *sealer, uint32_t stream, uint64_t lsn,
                                    uint64_t seq);
/* Returns whether the file of this name in open/ was resumed. */
bool tc_sealer_has_part(const struct tc_sealer *sealer, const char *name);
/* Returns how far an added stream is settled, including adopted segments. */
const struct tc_settled *tc_sealer_settled(const struct tc_sealer *sealer, uint32_t stream);
/* Sets the LSN at which the following replayed records begin. */
void tc_sealer_replay_from(struct tc_sealer *sealer, uint64_t lsn);
/* Replays a durable record; borrows the payload until tc_sealer_replay_flush(). *out_skip_to: records up to this seq
 * are in a segment that was published just before a crash; 0: none. */
TB_MUST tb_rc tc_sealer_replay(struct tc_sealer *sealer, uint32_t stream, unsigned kind,
                               uint64_t seq, uint64_t gen, const unsigned char *payload,
                               uint32_t len, uint32_t payload_crc, uint64_t wall_ns,
                               struct tb_diag *diag, uint64_t *out_skip_to);
/* Writes the borrowed payloads to the files. */
TB_MUST tb_rc tc_sealer_replay_flush(struct tc_sealer *sealer, struct tb_diag *diag);
/* Reports that records of the stream are missing in the log: its open generation is lost. */
TB_MUST tb_rc tc_sealer_replay_gap(struct tc_sealer *sealer, uint32_t stream, uint64_t first_seq,
                                   uint64_t last_seq, struct tb_diag *diag);
/* Ends the replay. end_lsn: end of the replayed log. */
TB_MUST tb_rc tc_sealer_replay_done(struct tc_sealer *sealer, uint64_t end_lsn,
                                    struct tb_diag *diag);
/* Offers generations without a verdict to analysis; finds or creates their streams with `stream_of`. */
TB_MUST tb_rc tc_sealer_offer_pending(struct tc_sealer *sealer,
                                      tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                                         const char *identity, const char *service,
                                                         const char *instance, uint32_t *out_ref),
                                      void *self, struct tb_diag *diag);

#endif
