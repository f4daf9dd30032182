/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of ta_emit_status() in the layout that the caller was compiled with.
 *
 * Fields are only ever appended, so an older caller's struct is a prefix of ours. One layout is older than this
 * rule: until ta_emit_forward_status() came, the stream's status stood by value in the middle. Its size identifies it.
 */
#ifndef TA_EMIT_GENERATION_STATUS_H
#define TA_EMIT_GENERATION_STATUS_H

#include "traceagent.h"

/* out->size says how much room there is; it stays as it is. */
void ta_status_store(const struct ta_emit_status *status, const struct ta_forward_status *stream,
                     struct ta_emit_status *out);

#endif
