/* SPDX-License-Identifier: Apache-2.0 */
/* The accounting of a living stream. An agent's counters name the last record that has a number, reported_seq: once
 * that one has come, and nothing after it, the collector must have exactly what the agent reported. The state
 * of this moment is kept for the audit: what the metas had then, by the number up to which all is settled, and what lay
 * open here. The metas' share never changes again, so the proof needs no second look at this thread. */
#ifndef TC_SEALER_BASE_ACCOUNTING_H
#define TC_SEALER_BASE_ACCOUNTING_H

#include "collector/sealer/base/stream.h"

/* Counters came. */
void tc__count_in(const struct tc__file_queue *queue, struct tc__stream *stream,
                  const struct tc_counters *counters);
/* A record was archived. */
void tc__cut_accounting(const struct tc__file_queue *queue, struct tc__stream *stream);

#endif
