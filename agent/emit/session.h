/* SPDX-License-Identifier: Apache-2.0 */
/* A session of emitting beyond traceagent.h: with an outlet of the caller's own, for tests and benchmarks. */
#ifndef TA_SESSION_H
#define TA_SESSION_H

#include "agent/emit/turn.h"
#include "traceagent.h"

/* As ta_emit_start(), to that outlet, which is called from the turner's thread until ta_emit_stop() returns.
 * memory_bytes: of the batches. */
int ta_emit_start_to(const struct ta_outlet *out, const struct ta_emit_config *config,
                     uint64_t memory_bytes);

#endif
