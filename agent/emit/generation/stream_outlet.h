/* SPDX-License-Identifier: Apache-2.0 */
/* Where a session's generations go: into a forwarded stream. */
#ifndef TA_EMIT_GENERATION_STREAM_OUTLET_H
#define TA_EMIT_GENERATION_STREAM_OUTLET_H

#include "agent/emit/generation/generation.h"
#include "traceagent.h"

/* records: the stream is a flight recorder's, which the session may be asked to send. */
struct ta_outlet ta_stream_outlet(ta_forward *forward, bool records);

#endif
