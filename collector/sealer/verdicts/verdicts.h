/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the verdict of ordering into the generation's meta: until the file is published it is kept in memory, afterwards the
 * meta is rewritten and renamed. */
#ifndef TC_SEALER_VERDICTS_VERDICTS_H
#define TC_SEALER_VERDICTS_VERDICTS_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Published segments with verdicts that are not in their metas yet. */
struct tc__verdict_queue {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  struct tc__file_queue *files; /* not published yet */
  struct tc__recent *first, **tail;
};

void tc__take_verdict(struct tc__verdict_queue *verdicts, struct tc__stream *stream,
                      struct tc_verdict *verdict);
/* Takes the late verdicts of a file that was just published. */
void tc__take_late(struct tc__verdict_queue *verdicts, struct tc__file *file);
/* Writes the verdicts of at most `most` metas, in the order in which the first verdict of each arrived. */
TB_MUST tb_rc tc__apply_verdicts(struct tc__verdict_queue *verdicts, size_t most,
                                 struct tb_diag *diag);

#endif
