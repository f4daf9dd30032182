/* SPDX-License-Identifier: Apache-2.0 */
/* The page's view of all streams, as one JSON object on one line: the event "overview" of /api/v1/live (docs/HTTP.md). Each
 * overview is complete, so that a reader may miss some.
 *
 * Figures are from the catalog and the latest reports, as in tracectl. Streams with a connection come first; at most
 * TC_OVERVIEW_STREAMS_MAX streams are written, and the total number.
 *
 * Threads   call it on a worker: it queries the catalog.
 */
#ifndef TC_HTTP_OVERVIEW_H
#define TC_HTTP_OVERVIEW_H

#include "base/buf.h"
#include "collector/query/session.h"

enum { TC_OVERVIEW_STREAMS_MAX = 500, TC_OVERVIEW_BLOCKED_MAX = 100, TC_OVERVIEW_FRAMES_MAX = 32 };

/* Writes nothing if the catalog cannot be read. */
void tc_overview_write(struct tc_query_session *session, struct tc_reports *reports,
                       struct tb_buf *out);

#endif
