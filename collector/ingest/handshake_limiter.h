/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the start of handshakes: none of the places that all share goes to a source that only wastes them.
 *
 * A handshake costs us a signature and a place among agents.handshakes_max. A source
 * (base/source.h) may have so many half-open at once, and so many failed ones in a second; past the latter it
 * is closed unheard. Past the former the question is whether its handshakes get anywhere: a herd of agents
 * behind one address waits its turn, since theirs take milliseconds; one who lets them hang for
 * TC_HANDSHAKE_LIMITER_PATIENCE_NS is closed unheard, so that others do not wait behind it.
 *
 * Memory    a table of TC_HANDSHAKE_LIMITER_SOURCES places. Once that many sources misbehave at the same time the next
 *           is let through: what all have together is limited elsewhere.
 * Threads   any.
 * Time      monotonic nanoseconds, handed in.
 */
#ifndef TC_INGEST_HANDSHAKE_LIMITER_H
#define TC_INGEST_HANDSHAKE_LIMITER_H

#include "base/result.h"

enum { TC_HANDSHAKE_LIMITER_SOURCES = 4096, TC_HANDSHAKE_LIMITER_PATIENCE_NS = 1000000000 };

struct tc_handshake_limiter;

struct tc_handshake_limiter_limits {
  uint64_t half_open_max;
  uint64_t failures_rate, failures_burst; /* a second; at once */
};

/* seed: secret, so that no peer can choose who shares its place. */
TB_MUST tb_rc tc_handshake_limiter_new(uint64_t seed, struct tc_handshake_limiter **out);
void tc_handshake_limiter_free(struct tc_handshake_limiter *limiter); /* NULL is fine */

enum tc_handshake_limiter_answer {
  TC_HANDSHAKE_LIMITER_OPEN, /* come in, and tc_handshake_limiter_leave() when the handshake is over */
  TC_HANDSHAKE_LIMITER_LATER, /* ask again in some milliseconds */
  TC_HANDSHAKE_LIMITER_CLOSED_HANGING,
  TC_HANDSHAKE_LIMITER_CLOSED_FAILING,
};

enum tc_handshake_limiter_answer
tc_handshake_limiter_enter(struct tc_handshake_limiter *limiter, uint64_t source,
                           const struct tc_handshake_limiter_limits *limits, uint64_t now_ns);
void tc_handshake_limiter_leave(struct tc_handshake_limiter *limiter, uint64_t source, bool failed,
                                uint64_t now_ns);

#endif
