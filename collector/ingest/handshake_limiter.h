/* SPDX-License-Identifier: Apache-2.0 */
/* Limits handshakes per source address (base/source.h), so that no source wastes what all share: a handshake costs a
 * signature and one of agents.handshakes_max.
 *
 * A source may have a number of half-open handshakes and a rate of failed ones. Beyond the rate it is closed at once. Beyond
 * the half-open limit it waits while its handshakes make progress, as those of many agents behind one address do within
 * milliseconds. A source without progress for TC_HANDSHAKE_LIMITER_PATIENCE_NS is closed at once, so that others need not
 * wait for it.
 *
 * Memory    a table of TC_HANDSHAKE_LIMITER_SOURCES places. If more sources misbehave at the same time, the others are
 *           admitted: their sum is limited elsewhere.
 * Threads   any.
 * Time      monotonic nanoseconds, given by the caller.
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

/* seed: secret, so that no peer can choose sources that share a place. */
TB_MUST tb_rc tc_handshake_limiter_new(uint64_t seed, struct tc_handshake_limiter **out);
void tc_handshake_limiter_free(struct tc_handshake_limiter *limiter); /* NULL is fine */

enum tc_handshake_limiter_answer {
  TC_HANDSHAKE_LIMITER_OPEN,  /* admitted; call tc_handshake_limiter_leave() after the handshake */
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
