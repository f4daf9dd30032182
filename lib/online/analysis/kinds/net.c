/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for files and sockets: those of block whose reason is of class net, as in Go's "network blocking profile". */
#include "online/analysis/kinds/block.h"

static tb_rc net_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  return to__block_report(a, view, d, TO__BLOCK_NET);
}

const struct to_analysis_ops to__analysis_net = {
  .schema = { .figures = TO__BLOCK_FIGURES,
              .tables = TO__BLOCK_TABLES,
              .figure = to__block_figure,
              .table = to__block_table },
  .thins = true,
  .report = net_report,
};
