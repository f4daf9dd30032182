/* SPDX-License-Identifier: Apache-2.0 */
/* Files in open/ that belong to no stream any more: the bytes of a generation that was given up, cut off from a run, and
 * files that could not be made whole. They are moved to quarantine or removed; if the disk refuses both, each turn of
 * the sealer tries again, as such a file is in the way of the next one of its name.
 *
 * Threads   the sealer's.
 */
#ifndef TC_SEALER_SEAL_RESTS_H
#define TC_SEALER_SEAL_RESTS_H

#include "collector/sealer/base/stream.h"

struct tc__seal;

void tc__keep_rest(struct tc__seal *seal, struct tc_segment *rest); /* NULL is fine */
void tc__clear_rests(struct tc__seal *seal);
void tc__rests_fini(struct tc__seal *seal); /* clears, and leaves the others to the next start */

/* Fails with TB_BUSY, which is tried again, if a rest has the name of the file that begins with generation gen. */
TB_MUST tb_rc tc__rest_check(const struct tc__seal *seal, const struct tc__stream *stream,
                             uint64_t gen, struct tb_diag *diag);

#endif
