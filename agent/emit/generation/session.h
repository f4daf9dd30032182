/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting sessions that traceagent.h does not offer: with the caller's own outlet, for tests and benchmarks; and late ones,
 * for the preload library.
 *
 * A late session keeps what threads write from start_late() on, but has no thread of its own and no connection, does not load
 * OpenSSL and does not sleep: most programs end soon and should not pay for a stream. run() makes it an ordinary session.
 * is_due() returns true once so much was written that run() should be called; the caller may also call it after some time.
 * abandon() ends a session that never ran; if there is a spool on disk, its trace is stored there for the next program. */
#ifndef TA_EMIT_GENERATION_SESSION_H
#define TA_EMIT_GENERATION_SESSION_H

#include "agent/emit/generation/generation.h"
#include "traceagent.h"

/* As ta_emit_start(), but writes to out, whose functions the flusher's thread calls until ta_emit_stop() returns.
 * memory_bytes: size of all batches. */
int ta_emit_start_to(const struct ta_outlet *out, const struct ta_emit_config *config,
                     uint64_t memory_bytes);

int ta_emit_start_late(const struct ta_forward_config *where, const struct ta_emit_config *how);
/* Does not connect before first_try_ns of the monotonic clock. TA_E_OFF: there is no late session. TA_E_THREAD, TA_E_SYSTEM:
 * the session is over, but ta_emit_stop() must still be called. */
int ta_emit_run(uint64_t first_try_ns);
static inline bool ta_emit_is_due(void) {
  return atomic_load_explicit(&ta_emit.due, memory_order_relaxed);
}
/* Called on a thread of its own when all threads of the program have ended. Default: stops the session, within a second. */
extern void (*ta_emit_deserted)(void);
bool ta_emit_end_deserted(void);    /* creates that thread; returns false if it cannot be created */
void ta_emit_abandon(void);         /* does nothing to a session that runs */
void ta_emit_abandon_at_exit(void); /* frees nothing unless the spool is on disk */
/* As ta_emit_stop(), but stops waiting when the collector is unlikely to answer (enum ta_outlook, agent/spool/spool.h). */
int ta_emit_stop_by_outlook(int64_t deadline_ms, uint64_t patience_ms);

#endif
