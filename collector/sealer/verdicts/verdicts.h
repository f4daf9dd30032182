/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict of ordering joins the generation's meta, whenever that is: before the file is published it
 * waits in memory, afterwards the meta is rewritten by rename. */
#ifndef TC_SEALER_VERDICTS_VERDICTS_H
#define TC_SEALER_VERDICTS_VERDICTS_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Published segments with verdicts that are to be written into their metas. */
struct tc__verdict_queue {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  struct tc__file_queue *files; /* those that are not published yet */
  struct tc__recent *first, **tail;
};

void tc__take_verdict(struct tc__verdict_queue *verdicts, struct tc__stream *stream,
                      struct tc_verdict *verdict);
void tc__take_late(struct tc__verdict_queue *verdicts, struct tc__file *file); /* it is published */
/* Writes those of so many metas at most, in the order in which the first of each came. */
TB_MUST tb_rc tc__apply_verdicts(struct tc__verdict_queue *verdicts, size_t most,
                                 struct tb_diag *diag);

#endif
