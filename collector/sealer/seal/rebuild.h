/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog made again from the metas, with the runs that are open: in one go before the thread runs, in slices between
 * other work while it does. */
#ifndef TC_SEALER_SEAL_REBUILD_H
#define TC_SEALER_SEAL_REBUILD_H

#include "collector/sealer/seal/seal.h"

/* In one go, before the start. */
void tc__rebuild_catalog(struct tc__seal *seal);
/* A slice of it, where it is to be done. */
void tc__rebuild_some(struct tc__seal *seal);

#endif
