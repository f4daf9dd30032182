/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that a meta reports are settled once the log says so. A run that dies in between leaves a meta that has
 * them and a log that brings their records again: the next start must not report them again, and what was
 * given up, and is counted as lost, must not become whole. These losses are known by their numbers, which lie behind
 * what is settled: each has the number of its LOSS, or of the first batch that it counts. */
#ifndef TC_SEALER_SEAL_RECORDED_H
#define TC_SEALER_SEAL_RECORDED_H

#include "collector/sealer/base/outbox.h"
#include "collector/sealer/catalog/sync.h"

/* Before the first record comes again. */
TB_MUST tb_rc tc__learn_reported(struct tc__catalog_sync *sync, struct tc__stream *stream,
                                 struct tb_diag *diag);
/* Those of the meta that lie behind what is settled. */
TB_MUST tb_rc tc__reported_by(struct tc__stream *stream, const tc_meta *meta);
/* Unless that meta reports it already: it is noted among the losses. why: for the feed, which hears of a new one; NULL: it does not. */
TB_MUST tb_rc tc__note_loss(struct tc__outbox *outbox, const struct tc__stream *stream,
                            struct tc__losses *losses, const struct tc__loss *loss,
                            const char *why);
/* So many batches of gen, from record first_seq on, are reported as lost: it was given up. 0: it was not. */
uint64_t tc__reported_of(const struct tc__stream *stream, uint64_t gen, uint64_t first_seq);
/* The record by which gen, open at record seq, was given up later, all of it reported as lost; 0: none. */
uint64_t tc__reported_end_of(const struct tc__stream *stream, uint64_t gen, uint64_t seq);
/* The next batch of gen, which is the abandoned one. */
bool tc__batch_was_reported(struct tc__stream *stream, uint64_t gen, uint64_t seq);
/* The meta without a segment that has the stream's losses, if there is one: note_day and note_gen. Asks once. */
TB_MUST tb_rc tc__find_note(struct tc__catalog_sync *sync, struct tc__stream *stream,
                            struct tb_diag *diag);

#endif
