/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log on stderr. A failure is logged once, by the code that reacts to it.
 *
 *   tc_log(TC_WARN, "conn", "peer=%s: %s; connection closed", peer, why);
 *
 * Under journald (JOURNAL_STREAM names our stderr) a line begins with its priority, "<4>"; otherwise with time and level.
 *
 * Limit     a call site writes at most TC_LOG_BURST lines about one subject (a stream, for example) in
 *           TC_LOG_WINDOW_S. The first TC_LOG_SUBJECTS subjects of a window have a limit each, all others
 *           share one. Lines beyond the limit are counted, and their number is logged when the window is
 *           over. TC_FATAL (the reason why the program ends) and tc_log_each() have no limit.
 *
 * Threads   any; a line is one write(2).
 */
#ifndef TC_BASE_LOGGER_H
#define TC_BASE_LOGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

enum { TC_LOG_BURST = 20, TC_LOG_WINDOW_S = 10, TC_LOG_SUBJECTS = 8, TC_ESCAPE_MAX = 256 };

enum tc_level { TC_FATAL = 2, TC_ERROR = 3, TC_WARN = 4, TC_NOTICE = 5, TC_INFO = 6 };

/* A call site. Not const, so that neither compiler nor linker merges two. */
struct tc_log_site {
  struct tc_log_site *next; /* in the list of sites that have written a line */
  bool listed;
  enum tc_level level; /* of the last line */
  const char *area, *like;
  struct tc_log_subject {
    uint64_t id;
    int64_t window_began_s;
    unsigned said, counted;
  } subjects[TC_LOG_SUBJECTS + 1]; /* the last one: all others */
};

/* A line of a thread that does not write to the log itself. */
struct tc_note {
  struct tc_log_site *site;
  enum tc_level level;
  uint64_t subject;
  const char *like; /* the format */
  const char *text;
};

#define tc_log(level, area, ...) tc_log_about(0, level, area, __VA_ARGS__)

/* Logs with a limit for this subject alone. */
#define tc_log_about(subject, level, area, ...)                                                    \
  do {                                                                                             \
    static struct tc_log_site site_;                                                               \
    tc_log_at(&site_, (subject), (level), (area), __VA_ARGS__);                                    \
  } while (0)

/* Logs without a limit: for lines that few peers can cause. */
#define tc_log_each(level, area, ...) tc_log_at(NULL, 0, (level), (area), __VA_ARGS__)

void tc_log_at(struct tc_log_site *site, uint64_t subject, enum tc_level level, const char *area,
               const char *fmt, ...) TB_PRINTF(5, 6);
void tc_log_note(const char *area, const struct tc_note *note);

/* Returns the subject for a text (a hash: texts that collide share a limit). */
uint64_t tc_log_subject_of(const char *text);

/* Escapes text for a line; required for anything that a peer may have chosen. Printable ASCII stays; all else, quotes and
 * backslashes become \xNN. Writes at most TC_ESCAPE_MAX bytes and returns out. */
const char *tc_escape(char out[TC_ESCAPE_MAX + 1], const void *text, size_t n);

/* Logs the counts of windows that are over. */
void tc_log_overdue(void);
/* Logs all counts now. */
void tc_log_flush(void);

#endif
