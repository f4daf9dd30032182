/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log: one line where someone reacts, to stderr.
 *
 *   tc_log(TC_WARN, "conn", "peer=%s: %s; connection closed", peer, why);
 *
 * Under journald (JOURNAL_STREAM names our stderr) a line begins with its priority, "<4>"; elsewhere
 * with time and level. A call site may say TC_LOG_BURST lines in TC_LOG_WINDOW_S; what it says beyond
 * that is counted, and told once the window is over.
 *
 * Threads   any; a line is one write(2).
 */
#ifndef TC_JOURNAL_H
#define TC_JOURNAL_H

#include <stddef.h>

#include "base/result.h"

enum { TC_LOG_BURST = 20, TC_LOG_WINDOW_S = 10, TC_ESCAPE_MAX = 256 };

enum tc_level { TC_ERROR = 3, TC_WARN = 4, TC_NOTICE = 5, TC_INFO = 6 };

void tc_log(enum tc_level level, const char *area, const char *fmt, ...) TB_PRINTF(3, 4);

/* Anything a peer may have chosen goes through here before it reaches a line: printable ASCII stays,
 * all else, quotes and backslashes become \xNN; at most TC_ESCAPE_MAX bytes come out. Returns out. */
const char *tc_escape(char out[TC_ESCAPE_MAX + 1], const void *text, size_t n);

/* Says what has been counted and not told yet. */
void tc_log_flush(void);

#endif
