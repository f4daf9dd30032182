/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer: durable records become segment files, metas and rows of the catalog.
 *
 *     work (in order, from the commit thread) ──> .part ──> whole generations ──> STORED to the stream's home
 *     loop ──> sealed in batches: sync, meta, rename, sync folders, catalog ──> SETTLED to the log, ARCHIVED
 *
 * Recovery uses the same object on the starting thread, before tc_sealer_start(): it adds streams and
 * records as the log has them, and what was whole when the last run died is sealed by the thread.
 *
 * Memory    work items belong to the sealer once posted; RELEASED says that records have left memory.
 * Threads   its own one after start; post() from the commit thread, take_settled() too.
 * Errors    a full disk holds the work back until there is space, a shortage of memory or descriptors for half a
 *           minute. After that it is reported once by TC_REPLY_FAILED, as other write errors are at once, and the
 *           work is tried again as well: nothing durable is dropped.
 */
#ifndef TC_SEALER_SEALER_H
#define TC_SEALER_SEALER_H

#include "collector/sealer/base/env.h"
#include "collector/sealer/base/work.h"

struct tc_sealer;

TB_MUST tb_rc tc_sealer_new(const struct tc_sealer_options *options, struct tb_diag *diag,
                            struct tc_sealer **out);
TB_MUST tb_rc tc_sealer_start(struct tc_sealer *sealer, struct tb_diag *diag);
/* Works off what is posted, seals what is whole, ends the thread. The caller posts nothing any more. Work
 * that is not done at the deadline stays in the log, for the next start; 0: all is done. */
void tc_sealer_stop(struct tc_sealer *sealer, uint64_t deadline_mono_ns);
/* Before the caller itself stops posting: from the deadline on no work is begun. */
void tc_sealer_set_deadline(struct tc_sealer *sealer, uint64_t mono_ns);
void tc_sealer_free(struct tc_sealer *sealer);

/* A chain of work in order; false: full, the chain stays the caller's. */
bool tc_sealer_post(struct tc_sealer *sealer, struct tc_work *chain);
struct tc_settled *tc_sealer_take_settled(struct tc_sealer *sealer); /* NULL: none */
/* The catalog gets what the open runs have by now. Waits for that, for a second at most: a sealer that is busy or waits
 * for the disk shows it later. Any thread, while the sealer runs. */
void tc_sealer_show_runs(struct tc_sealer *sealer);

/* ---- recovery, before start */
TB_MUST tb_rc tc_sealer_add_stream(struct tc_sealer *sealer, const struct tc_stream_intro *intro,
                                   struct tb_diag *diag);
/* Takes up the open file of a checkpoint (LogCheckpoint, packed). If it is not what the checkpoint says, its
 * generation is lost and noted so: either way the stream's records up to the checkpoint's are done with.
 * *out_skip_to: as below. TB_BROKEN: it does not parse, nothing was done. */
TB_MUST tb_rc tc_sealer_resume(struct tc_sealer *sealer, uint32_t stream,
                               const unsigned char *packed, size_t len, struct tb_diag *diag,
                               uint64_t *out_skip_to);
/* To the log: the records up to seq that only this checkpoint has are lost. */
void tc_sealer_note_checkpoint_lost(struct tc_sealer *sealer, uint32_t stream, uint64_t lsn,
                                    uint64_t seq);
/* Is this name in open/ one that was taken up? */
bool tc_sealer_has_part(const struct tc_sealer *sealer, const char *name);
/* How far the stream is settled, segments it took as they were included; of a stream that was added. */
const struct tc_settled *tc_sealer_settled(const struct tc_sealer *sealer, uint32_t stream);
/* The records that are replayed from here on lie at lsn or behind it. */
void tc_sealer_replay_from(struct tc_sealer *sealer, uint64_t lsn);
/* One durable record; the payload is borrowed until tc_sealer_replay_flush(). *out_skip_to: records up to this seq
 * are in a segment already that the last run published without saying so; 0: none. */
TB_MUST tb_rc tc_sealer_replay(struct tc_sealer *sealer, uint32_t stream, unsigned kind,
                               uint64_t seq, uint64_t gen, const unsigned char *payload,
                               uint32_t len, uint32_t payload_crc, uint64_t wall_ns,
                               struct tb_diag *diag, uint64_t *out_skip_to);
/* Writes what is borrowed to its files. */
TB_MUST tb_rc tc_sealer_replay_flush(struct tc_sealer *sealer, struct tb_diag *diag);
/* Records of the stream are missing in the log before the next one: its open generation is lost. */
TB_MUST tb_rc tc_sealer_replay_gap(struct tc_sealer *sealer, uint32_t stream, uint64_t first_seq,
                                   uint64_t last_seq, struct tb_diag *diag);
/* end_lsn: what was replayed lies before it, what will be logged behind it. */
TB_MUST tb_rc tc_sealer_replay_done(struct tc_sealer *sealer, uint64_t end_lsn,
                                    struct tb_diag *diag);
/* Offers what is archived but not yet understood; finds or makes streams through `stream_of`. */
TB_MUST tb_rc tc_sealer_offer_pending(struct tc_sealer *sealer,
                                      tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                                         const char *identity, const char *service,
                                                         const char *instance, uint32_t *out_ref),
                                      void *self, struct tb_diag *diag);

#endif
