/* SPDX-License-Identifier: Apache-2.0 */
/* The accounting of a live stream. An agent's counters name its last numbered record, reported_seq. When that record
 * has arrived and none after it, the collector must have exactly what the agent reported. A snapshot of this moment is
 * kept for the audit: the number up to which all is settled (its part is in the metas) and the sum of what was open
 * here. The part in the metas never changes, so the audit need not ask this thread again. */
#ifndef TC_SEALER_BASE_ACCOUNTING_H
#define TC_SEALER_BASE_ACCOUNTING_H

#include "collector/sealer/base/stream.h"

/* Handles counters that arrived from the agent. */
void tc__count_in(const struct tc__file_queue *queue, struct tc__stream *stream,
                  const struct tc_counters *counters);
/* Takes the snapshot (stream->cut) if the record that was archived last is reported_seq. */
void tc__cut_accounting(const struct tc__file_queue *queue, struct tc__stream *stream);

#endif
