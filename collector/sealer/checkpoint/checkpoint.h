/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a stream's open file is synced to the disk, so that the log need not be kept for a long generation. The next
 * start resumes the file.
 *
 * Bytes that a checkpoint names are never changed: a file is only appended to. So an older checkpoint stays valid. A checkpoint
 * is no longer needed once the stream is settled past it.
 *
 * There are two kinds. One names the whole generations of a run. The log still has the open generation that follows them, so
 * the file can be cut after the last whole generation without a loss. The other kind names an open generation that is alone in
 * its file. */
#ifndef TC_SEALER_CHECKPOINT_CHECKPOINT_H
#define TC_SEALER_CHECKPOINT_CHECKPOINT_H

#include "collector/sealer/checkpoint/published.h"

TB_MUST tb_rc tc__archive_checkpoint(struct tc__seal *seal, struct tc__stream *stream,
                                     uint64_t held_lsn, struct tb_diag *diag);
/* See tc_sealer_resume(). */
TB_MUST tb_rc tc__resume(struct tc__recovery *recovery, struct tc__stream *stream,
                         const unsigned char *packed, size_t len, struct tb_diag *diag,
                         uint64_t *out_skip_to);
/* Offers the resumed generations that have no verdict; called before later ones are offered. */
void tc__offer_resumed(struct tc__seal *seal);

#endif
