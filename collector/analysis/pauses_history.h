/* SPDX-License-Identifier: Apache-2.0 */
/* How long the world of each stream was stopped, by second and cause, for the last minutes: a page that is opened
 * now begins its chart with them.
 *
 *   analysis ──totals, as they are published──> pause ring ──> /api/v1/live, event "history"
 *
 * The input is totals since a stream began; their growth is stored under the second in which they arrived.
 * The next overview's totals therefore continue where the ring ends.
 *
 * Memory    bytes_max, allocated at once. If it is short the oldest stops are dropped first;
 *           a stream for which there is no entry has no history.
 * Threads   any: one lock, held for microseconds to add, for milliseconds to write the history for a new page.
 * Time      wall clock nanoseconds, passed in.
 * Errors    new: TB_NOMEM. No other function fails.
 */
#ifndef TC_ANALYSIS_PAUSES_HISTORY_H
#define TC_ANALYSIS_PAUSES_HISTORY_H

#include "base/buf.h"
#include "online/analysis/analysis.h"

enum { TC_PAUSES_HISTORY_SECONDS = 300, TC_PAUSES_HISTORY_BYTES_MIN = 64 << 10 };

struct tc_pauses_history;

/* now_wall_ns: begin of the history; bytes_max: at least TC_PAUSES_HISTORY_BYTES_MIN. */
TB_MUST tb_rc tc_pauses_history_new(size_t bytes_max, uint64_t now_wall_ns,
                                    struct tc_pauses_history **out);
void tc_pauses_history_free(struct tc_pauses_history *history); /* NULL is fine */

struct tc_pauses_history_of {  /* a stream; lent */
  const unsigned char *stream; /* 16 bytes */
  const char *service, *instance;
  bool begins; /* these are its first totals: all of them are new */
};

/* history: may be NULL, nothing is stored then. */
void tc_pauses_history_stops(struct tc_pauses_history *history,
                             const struct tc_pauses_history_of *of,
                             const struct to_stop_total *totals, size_t n, uint64_t now_wall_ns);

/* Writes one line of JSON (docs/HTTP.md). */
void tc_pauses_history_write(struct tc_pauses_history *history, uint64_t now_wall_ns,
                             struct tb_buf *out);

#endif
