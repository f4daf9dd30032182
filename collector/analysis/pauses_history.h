/* SPDX-License-Identifier: Apache-2.0 */
/* How long the world of each stream stood still in each of the last minutes' seconds, by cause: where the
 * chart of a page begins that is opened now.
 *
 *   understand ──totals, as they are published──> history ──> /api/v1/live, event "history"
 *
 * The input is totals since a stream began; what is kept is by how much they grew, in the second in which
 * they came: so the next overview's totals go on where the history ends.
 *
 * Memory    bytes_max, taken at once. Where it is short the oldest stops go first;
 *           a stream that finds no place has no history.
 * Threads   any: one lock, held for microseconds to add, for milliseconds to report a new page.
 * Time      wall clock nanoseconds, handed in.
 * Errors    new: TB_NOMEM. Nothing else leaves here.
 */
#ifndef TC_ANALYSIS_PAUSES_HISTORY_H
#define TC_ANALYSIS_PAUSES_HISTORY_H

#include "base/buf.h"

enum { TC_PAUSES_HISTORY_SECONDS = 300, TC_PAUSES_HISTORY_BYTES_MIN = 64 << 10 };

struct tc_pauses_history;

/* now: when it begins; bytes_max: at least TC_PAUSES_HISTORY_BYTES_MIN. */
TB_MUST tb_rc tc_pauses_history_new(size_t bytes_max, uint64_t now_wall_ns,
                                    struct tc_pauses_history **out);
void tc_pauses_history_free(struct tc_pauses_history *history); /* NULL is fine */

struct tc_pauses_history_of {  /* a stream; lent */
  const unsigned char *stream; /* 16 bytes */
  const char *service, *instance;
  bool begins; /* its totals come for the first time: all of it is new */
};

struct tc_pause_total {
  const char *id;    /* lent: /stw/gc/mark-termination */
  uint64_t total_ns; /* since the stream began */
};

/* history NULL: nothing is kept. */
void tc_pauses_history_stops(struct tc_pauses_history *history,
                             const struct tc_pauses_history_of *of,
                             const struct tc_pause_total *totals, size_t n, uint64_t now_wall_ns);

/* One line of JSON (docs/HTTP.md). */
void tc_pauses_history_write(struct tc_pauses_history *history, uint64_t now_wall_ns,
                             struct tb_buf *out);

#endif
