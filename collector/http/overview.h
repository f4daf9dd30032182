/* SPDX-License-Identifier: Apache-2.0 */
/* Everything the page shows of all streams, as one JSON object on one line: the event "overview" of
 * /api/v1/live (docs/HTTP.md). Each one is whole, so a reader that missed some has lost nothing.
 *
 * Figures are those of the catalog and of the latest reports, the same that tracectl prints. Streams
 * with a connection come first; past TC_OVERVIEW_STREAMS_MAX the rest is a number.
 *
 * Threads   a worker's: it asks the catalog.
 */
#ifndef TC_HTTP_OVERVIEW_H
#define TC_HTTP_OVERVIEW_H

#include "base/buf.h"
#include "collector/query/session.h"

enum { TC_OVERVIEW_STREAMS_MAX = 500, TC_OVERVIEW_BLOCKED_MAX = 100, TC_OVERVIEW_FRAMES_MAX = 32 };

/* Nothing is written where the catalog cannot be asked. */
void tc_overview_write(struct tc_query_session *session, struct tc_reports *reports,
                       struct tb_buf *out);

#endif
