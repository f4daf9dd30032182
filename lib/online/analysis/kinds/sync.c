/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of block with a reason of class sync or chan, as in Go's "synchronization blocking profile". */
#include "online/analysis/kinds/block.h"

static tb_rc sync_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  return to__block_report(a, view, d, TO__BLOCK_SYNC);
}

const struct to_analysis_ops to__analysis_sync = {
  .schema = { .figures = TO__BLOCK_FIGURES,
              .tables = TO__BLOCK_TABLES,
              .figure = to__block_figure,
              .table = to__block_table },
  .thins = true,
  .report = sync_report,
};
