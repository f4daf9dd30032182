/* SPDX-License-Identifier: Apache-2.0 */
/* Takes segments out of the archive, several together, in steps. Each step is done for all before the next one begins, so
 * that a folder is synced twice and the catalog written once for all of them:
 *
 *   marks      each meta says that its segment expired, and is on the disk under its name
 *   traces     their names are gone, on the disk too
 *   catalog    its rows say the same
 *
 * A batch is put down between any two calls that may wait for the disk, but for those of the marks, and goes on after
 * other work: a slice ends where the next call, if it takes as long as the last one, would not fit into it. How many
 * segments are marked together goes by how long it took before.
 *
 * A failure ends the steps of its own segment. Between the first step and the last a segment is half gone: the catalog
 * still has it, so the next round goes on with it, and a next start finds the catalog's mark, rebuilds it from the metas
 * and finishes what was begun here. */
#ifndef TC_SEALER_RETENTION_EXPIRE_H
#define TC_SEALER_RETENTION_EXPIRE_H

#include "collector/sealer/retention/retention.h"

enum { TC__EXPIRE_MAX = 32 };
struct tc__expiry;
/* For each, in order; diag->rc: how it went. */
typedef void tc__expired_fn(void *self, const struct tc_segment_row *row,
                            const struct tb_diag *diag);
/* Begins with the first ones of rows, one at least: they are marked. The rows stay where they are until the end. NULL: no
 * memory. The catalog's mark is on the disk. */
struct tc__expiry *tc__expire(struct tc__retaining *retaining, const struct tc_segment_row *rows[],
                              size_t n);
/* False: not all fitted before then; a call at least was made if there was time at all. */
bool tc__expire_go_on(struct tc__expiry *expiry, uint64_t until_ns);
size_t tc__expire_end(struct tc__expiry *expiry, tc__expired_fn *done, void *self); /* how many */
void tc__expire_free(struct tc__expiry *expiry); /* half gone: the next start goes on */

#endif
