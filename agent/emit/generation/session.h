/* SPDX-License-Identifier: Apache-2.0 */
/* A session of emitting beyond traceagent.h: with an outlet of the caller's own, for tests and benchmarks; and one that
 * begins late, for the preload library.
 *
 * Late means: what threads write is kept from start_late() on, but there is no thread of ours, no connection and
 * nothing of OpenSSL, and start_late() sleeps for nothing. Most programs are over in a moment, and should not pay
 * for a stream. run() makes it a session like any other. is_due() says that so much was written that it is time; the
 * caller looks at the clock. abandon() ends a session that never ran: with a spool on disk its trace goes there, for
 * the next program. */
#ifndef TA_EMIT_GENERATION_SESSION_H
#define TA_EMIT_GENERATION_SESSION_H

#include "agent/emit/generation/generation.h"
#include "traceagent.h"

/* As ta_emit_start(), to that outlet, which is called from the flusher's thread until ta_emit_stop() returns.
 * memory_bytes: of the batches. */
int ta_emit_start_to(const struct ta_outlet *out, const struct ta_emit_config *config,
                     uint64_t memory_bytes);

int ta_emit_start_late(const struct ta_forward_config *where, const struct ta_emit_config *how);
/* No connection is tried before first_try_ns of the monotonic clock. TA_E_OFF: there is nothing to run. TA_E_THREAD,
 * TA_E_SYSTEM: the session is over, and is still to be stopped. */
int ta_emit_run(uint64_t first_try_ns);
static inline bool ta_emit_is_due(void) {
  return atomic_load_explicit(&ta_emit.due, memory_order_relaxed);
}
/* What ends the session where the program's threads have all ended without it; as ta_emit_stop() if nobody sets it. It runs
 * on a thread of its own. */
extern void (*ta_emit_deserted)(void);
bool ta_emit_end_deserted(void); /* makes that thread; false: it cannot be made */
void ta_emit_abandon(void);         /* one that runs is left alone */
void ta_emit_abandon_at_exit(void); /* the same, and memory is left to the end of the process */
/* ta_emit_stop(), but it waits no longer than there is hope (agent/spool/spool.h). */
int ta_emit_stop_in_hope(int64_t deadline_ms, uint64_t patience_ms);

#endif
