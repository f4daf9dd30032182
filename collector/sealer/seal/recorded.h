/* SPDX-License-Identifier: Apache-2.0 */
/* Losses in a meta that the log does not have as settled, because the collector died after it wrote the meta and before the log
 * had it. Their records are replayed: the start must not report them again, and a generation that was counted as lost must not
 * become whole. These losses are recognized by their sequence number, which is above what is settled: that of the LOSS record,
 * or of the first batch that is counted. */
#ifndef TC_SEALER_SEAL_RECORDED_H
#define TC_SEALER_SEAL_RECORDED_H

#include "collector/sealer/base/outbox.h"
#include "collector/sealer/catalog/sync.h"

/* Fills stream->reported; called before the stream's first record is replayed. */
TB_MUST tb_rc tc__learn_reported(struct tc__catalog_sync *sync, struct tc__stream *stream,
                                 struct tb_diag *diag);
/* Adds the meta's losses above settled.seq to stream->reported. */
TB_MUST tb_rc tc__reported_by(struct tc__stream *stream, const tc_meta *meta);
/* Adds a loss to `losses` unless it is in stream->reported. A new one is sent to the feed with the reason `why`, if not NULL. */
TB_MUST tb_rc tc__note_loss(struct tc__outbox *outbox, const struct tc__stream *stream,
                            struct tc__losses *losses, const struct tc__loss *loss,
                            const char *why);
/* Returns the number of batches of gen, from record first_seq on, that are reported as lost; 0: gen was not given up. */
uint64_t tc__reported_of(const struct tc__stream *stream, uint64_t gen, uint64_t first_seq);
/* Returns the sequence number of the reported loss that ended gen, which was open at record seq; 0: none. */
uint64_t tc__reported_end_of(const struct tc__stream *stream, uint64_t gen, uint64_t seq);
/* Returns whether this batch of the abandoned generation is counted in a reported loss. Call once for each batch. */
bool tc__batch_was_reported(struct tc__stream *stream, uint64_t gen, uint64_t seq);
/* Finds the meta without a segment that has the stream's losses, and fills stream->note. Searches once. */
TB_MUST tb_rc tc__find_note(struct tc__catalog_sync *sync, struct tc__stream *stream,
                            struct tb_diag *diag);

#endif
