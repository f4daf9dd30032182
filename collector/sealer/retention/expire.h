/* SPDX-License-Identifier: Apache-2.0 */
/* Removes segments from the archive in batches, in steps. Each step is done for all segments before the next begins, so that a
 * folder is synced twice and the catalog is written once for the whole batch:
 *
 *   marks      set `expired` in each meta; sync and rename it
 *   traces     unlink them; sync the folders
 *   catalog    update the rows
 *
 * Except during the marks, a batch is interrupted between any two calls that may wait for the disk, and continues after
 * other work: a slice ends if the next call, taking as long as the last, would not fit into it. The number of segments
 * marked together depends on how long this took before.
 *
 * An error ends the steps of its own segment only. Between the first step and the last a segment is half gone: the
 * catalog still has it, so the next round continues. The next start finds the catalog's mark, rebuilds it from the metas
 * and finishes the removal. */
#ifndef TC_SEALER_RETENTION_EXPIRE_H
#define TC_SEALER_RETENTION_EXPIRE_H

#include "collector/sealer/retention/retention.h"

enum { TC__EXPIRE_MAX = 32 };
struct tc__expiry;
/* Called for each segment, in order; diag->rc is its result. */
typedef void tc__expired_fn(void *self, const struct tc_segment_row *row,
                            const struct tb_diag *diag);
/* Begins a batch and marks its segments: at least the first of rows, at most n. The rows must stay valid until the end. The
 * caller has written the catalog's mark. Returns NULL if memory cannot be allocated. */
struct tc__expiry *tc__expire(struct tc__retaining *retaining, const struct tc_segment_row *rows[],
                              size_t n);
/* Returns false if steps are left after until_ns. */
bool tc__expire_go_on(struct tc__expiry *expiry, uint64_t until_ns);
/* Calls done() for each segment, frees the batch and returns the number of its segments. */
size_t tc__expire_end(struct tc__expiry *expiry, tc__expired_fn *done, void *self);
void tc__expire_free(struct tc__expiry *expiry); /* the next start does the steps left */

#endif
