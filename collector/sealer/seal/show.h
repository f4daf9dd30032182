/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while they are written. A reader that asks for what is archived sees their complete generations without a run
 * being cut for it: the catalog gets a row for each run that has grown, marked as open, with the file in open/ as its
 * path. Sealing makes it an ordinary row of the same id.
 *
 * The catalog shows the complete generations of the runs that are written, as they are when a pass looks at them: in
 * slices, so that records need not wait for thousands of runs. A pass that begins takes the place of the one that goes
 * on. */
#ifndef TC_SEALER_SEAL_SHOW_H
#define TC_SEALER_SEAL_SHOW_H

#include "collector/sealer/seal/seal.h"

enum { TC__SHOW_NS = 10000000 };
void tc__begin_show(struct tc__seal *seal);
/* A slice, of one run at least. *out_done: the pass is at its end. */
TB_MUST tb_rc tc__show_open_runs(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag,
                                 bool *out_done);
/* The catalog was made again: it shows none. */
void tc__forget_shown_runs(struct tc__seal *seal);
/* The run will not be sealed. */
TB_MUST tb_rc tc__hide_open_run(struct tc__catalog_sync *sync, const struct tc__file *file,
                                struct tb_diag *diag);

#endif
