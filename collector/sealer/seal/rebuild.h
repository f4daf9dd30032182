/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds the catalog from the metas and the open runs. */
#ifndef TC_SEALER_SEAL_REBUILD_H
#define TC_SEALER_SEAL_REBUILD_H

#include "collector/sealer/seal/seal.h"

/* Rebuilds in one go, before the thread starts. */
void tc__rebuild_catalog(struct tc__seal *seal);
/* Rebuilds for one slice of time if a rebuild is due; called between other work. */
void tc__rebuild_some(struct tc__seal *seal);

#endif
