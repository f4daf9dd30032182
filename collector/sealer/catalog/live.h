/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's rows of live streams: each one's progress, and whether its agent is connected. */
#ifndef TC_SEALER_CATALOG_LIVE_H
#define TC_SEALER_CATALOG_LIVE_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Writes the rows that were marked by tc__mark_live(). */
void tc__flush_live(struct tc__catalog_sync *sync, struct tc__streams *streams);

#endif
