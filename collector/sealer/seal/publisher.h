/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes queued files together, in four steps, each for all files: sync bytes and metas; rename metas, then traces, to
 * their final names (the commit point); sync the folders; write the rows of the catalog. The kernel is asked to write the
 * bytes of all files before the first sync waits.
 *
 * Any step may find the disk full. Finished steps stay done; the rest is tried again. */
#ifndef TC_SEALER_SEAL_PUBLISHER_H
#define TC_SEALER_SEAL_PUBLISHER_H

#include "collector/sealer/seal/seal.h"

/* Returns TB_AGAIN after the deadline of a stop. */
TB_MUST tb_rc tc__publish_queue(struct tc__seal *seal, struct tb_diag *diag);

#endif
