/* SPDX-License-Identifier: Apache-2.0 */
/* The outlet that writes a session's generations into a forwarded stream. */
#ifndef TA_EMIT_GENERATION_STREAM_OUTLET_H
#define TA_EMIT_GENERATION_STREAM_OUTLET_H

#include "agent/emit/generation/generation.h"
#include "traceagent.h"

/* records: the stream is a flight recorder's, so snaps can be requested. */
struct ta_outlet ta_stream_outlet(ta_forward *forward, bool records);

#endif
