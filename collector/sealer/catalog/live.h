/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of live streams: how far each has come, and whether its agent is there. */
#ifndef TC_SEALER_CATALOG_LIVE_H
#define TC_SEALER_CATALOG_LIVE_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Writes the rows of live streams that have changed. */
void tc__flush_live(struct tc__catalog_sync *sync, struct tc__streams *streams);

#endif
