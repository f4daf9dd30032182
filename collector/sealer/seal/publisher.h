/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing. Files that became whole together are published together, in four steps, each for all of them:
 * bytes and metas reach the disk; metas, then traces get their names (the commit point); the names reach
 * the disk; the catalog has its rows. The bytes of all are on their way before the first is waited for.
 *
 * Any step may find the disk full: what was done stays done, the rest is tried again. */
#ifndef TC_SEALER_SEAL_PUBLISHER_H
#define TC_SEALER_SEAL_PUBLISHER_H

#include "collector/sealer/seal/seal.h"

/* TB_AGAIN: the deadline of a stop is over. */
TB_MUST tb_rc tc__publish_queue(struct tc__seal *seal, struct tb_diag *diag);

#endif
