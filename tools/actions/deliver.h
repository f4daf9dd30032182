/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one action on a thread of its own, so that an action that hangs delays no other. Tasks wait in a queue for each rule (waiting.h).
 *
 * A failure that may pass (AC_LATER) is retried after 1 s, 2 s and so on, up to a minute, until the firing is an hour old; other rules
 * continue meanwhile. Other failures are final. When a task is over the id of its firing is stored (progress.h), so that a restart
 * continues after it; a task that was running is done again.
 *
 * Memory    at most AC_WAITING_MAX firings an action; dropped ones are logged.
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
/* Queues the firing if it names the action and is not done yet. TB_NOMEM: add it again. */
TB_MUST tb_rc ac_line_add(struct ac_line *line, const Tracecollect__V1__Firing *firing);
void ac_line_stop(struct ac_line *line); /* stop_fd is readable; NULL is fine */

#endif
