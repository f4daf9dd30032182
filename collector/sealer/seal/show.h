/* SPDX-License-Identifier: Apache-2.0 */
/* Shows readers the complete generations of open runs, without closing the runs: the catalog gets a row for each run that
 * has grown, marked as open, with the file in open/ as its path. Publishing turns it into an ordinary row of the same id.
 *
 * A pass over the runs works in slices, so that records need not wait for thousands of runs. Beginning a pass replaces
 * the one in progress. */
#ifndef TC_SEALER_SEAL_SHOW_H
#define TC_SEALER_SEAL_SHOW_H

#include "collector/sealer/seal/seal.h"

enum { TC__SHOW_NS = 10000000 };
void tc__begin_show(struct tc__seal *seal);
/* Shows runs until until_ns, at least one. *out_done: the pass is complete. */
TB_MUST tb_rc tc__show_open_runs(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag,
                                 bool *out_done);
/* Called after a rebuild: the catalog shows no run. */
void tc__forget_shown_runs(struct tc__seal *seal);
/* Removes the row of a run that will not be published. */
TB_MUST tb_rc tc__hide_open_run(struct tc__catalog_sync *sync, const struct tc__file *file,
                                struct tb_diag *diag);

#endif
