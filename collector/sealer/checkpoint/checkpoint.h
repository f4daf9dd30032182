/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: what lies open of a stream is put on the disk where it is, so that the log need not be
 * kept for a generation that takes its time; and taken up again by the next start.
 *
 * A file that a checkpoint names is only ever written behind the bytes that count, so an older checkpoint of
 * it stays true. The checkpoint is over when the stream is settled past it.
 *
 * There are two kinds. One names the whole generations of a run; what is open behind them stays in the log, so that a cut
 * at the border takes nothing that only the file has. The other names a generation that is open alone in its file. */
#ifndef TC_SEALER_CHECKPOINT_CHECKPOINT_H
#define TC_SEALER_CHECKPOINT_CHECKPOINT_H

#include "collector/sealer/checkpoint/published.h"

TB_MUST tb_rc tc__archive_checkpoint(struct tc__seal *seal, struct tc__stream *stream,
                                     uint64_t held_lsn, struct tb_diag *diag);
/* As tc_sealer_resume(). */
TB_MUST tb_rc tc__resume(struct tc__recovery *recovery, struct tc__stream *stream,
                         const unsigned char *packed, size_t len, struct tb_diag *diag,
                         uint64_t *out_skip_to);
/* What was taken up and has no verdict is offered again, before what comes behind it. */
void tc__offer_resumed(struct tc__seal *seal);

#endif
