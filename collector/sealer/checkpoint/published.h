/* SPDX-License-Identifier: Apache-2.0 */
/* What the last run published and died before it could say so: its segments are taken as they are. */
#ifndef TC_SEALER_CHECKPOINT_PUBLISHED_H
#define TC_SEALER_CHECKPOINT_PUBLISHED_H

#include "collector/sealer/retention/fold.h"
#include "collector/sealer/seal/seal.h"

/* The log is replayed into `seal`; the ledgers say which of its records are folded already. */
struct tc__recovery {
  struct tc__seal *seal;
  struct tc__folding *folding;
};

/* If a segment of the stream begins with this record, which the last run published without saying so, it
 * is taken as it is; *out_skip_to: records up to here stand in it. */
TB_MUST tb_rc tc__adopt_published(struct tc__recovery *recovery, struct tc__stream *stream,
                                  const char *day, uint64_t gen, uint64_t first_seq,
                                  struct tb_diag *diag, uint64_t *out_skip_to);
/* Its generations without a verdict are offered. */
TB_MUST tb_rc tc__offer_meta(struct tc__outbox *outbox, struct tc__stream *stream,
                             const tc_meta *meta);
size_t tc__count_pending(const tc_meta *meta); /* generations without a verdict */

#endif
