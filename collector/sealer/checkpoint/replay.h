/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the log into the sealer. Records are handled as live ones are, except those of segments that were published just
 * before a crash. */
#ifndef TC_SEALER_CHECKPOINT_REPLAY_H
#define TC_SEALER_CHECKPOINT_REPLAY_H

#include "collector/sealer/checkpoint/published.h"
#include "collector/sealer/seal/records.h"

/* See tc_sealer_replay() and the functions after it in sealer.h. */
TB_MUST tb_rc tc__replay(struct tc__recovery *recovery, struct tc__stream *stream,
                         const struct tc__item *item, struct tb_diag *diag, uint64_t *out_skip_to);
TB_MUST tb_rc tc__replay_gap(struct tc__seal *seal, struct tc__stream *stream, uint64_t first_seq,
                             uint64_t last_seq, struct tb_diag *diag);
TB_MUST tb_rc tc__replay_done(struct tc__recovery *recovery, uint64_t end_lsn,
                              struct tb_diag *diag);

#endif
