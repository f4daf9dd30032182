/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that were published just before a crash, so that the log still has their records: adopted as they are. */
#ifndef TC_SEALER_CHECKPOINT_PUBLISHED_H
#define TC_SEALER_CHECKPOINT_PUBLISHED_H

#include "collector/sealer/retention/fold.h"
#include "collector/sealer/seal/seal.h"

/* The log is replayed into `seal`; the ledgers name the records that are folded already. */
struct tc__recovery {
  struct tc__seal *seal;
  struct tc__folding *folding;
};

/* If the archive has a segment of the stream that begins with this record, adopts it; *out_skip_to: the last record that
 * is in it. */
TB_MUST tb_rc tc__adopt_published(struct tc__recovery *recovery, struct tc__stream *stream,
                                  const char *day, uint64_t gen, uint64_t first_seq,
                                  struct tb_diag *diag, uint64_t *out_skip_to);
/* Offers the meta's generations that have no verdict. */
TB_MUST tb_rc tc__offer_meta(struct tc__outbox *outbox, struct tc__stream *stream,
                             const tc_meta *meta);
size_t tc__count_pending(const tc_meta *meta); /* generations without a verdict */

#endif
