/* SPDX-License-Identifier: Apache-2.0 */
/* One action, on a thread of its own, so that one that hangs delays no other: what is to be done waits in a queue for each rule (waiting.h).
 *
 * What fails for a reason that may pass (AC_LATER) is tried again after 1 s, 2 s and so on, up to a minute, until the firing
 * is an hour old; other rules go on meanwhile. All else is final. After each one that is over the id of its firing is noted (progress.h), so that a
 * restart goes on behind it; one that was under way is done again.
 *
 * Memory    at most AC_WAITING_MAX firings an action; the log says which were given up.
 * Threads   start, add, stop: the main thread's.
 */
#ifndef AC_DELIVER_H
#define AC_DELIVER_H

#include <stdint.h>

#include "proto/archive.pb-c.h"
#include "tools/actions/config.h"
#include "tools/actions/progress.h"
#include "tools/actions/waiting.h"

enum ac_outcome { AC_DONE, AC_LATER, AC_FAILED };

struct ac_line;

/* stop_fd becomes readable when all are to end. */
TB_MUST tb_rc ac_line_start(const struct ac_action *action, struct ac_progress *progress,
                            int stop_fd, struct ac_line **out);
/* If the firing names the action, and the action is not past it. TB_NOMEM: it is to be added again. */
TB_MUST tb_rc ac_line_add(struct ac_line *line, const Tracecollect__V1__Firing *firing);
void ac_line_stop(struct ac_line *line); /* stop_fd is readable; NULL is fine */

#endif
