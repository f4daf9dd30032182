/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the command of an action: no shell, the text on its stdin, its stdout and stderr are ours. After AC_EXEC_S it is killed.
 * What it has started and left running is killed with it, whatever group or session that has made its own. Exit code 0 is success, 75 (EX_TEMPFAIL) asks for another try. */
#ifndef AC_EXEC_H
#define AC_EXEC_H

#include "tools/actions/deliver.h"

enum { AC_EXEC_S = 60 };

/* AC_LATER with diag->rc TB_BUSY: stop_fd became readable, and the command was killed. */
enum ac_outcome ac_exec(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                        struct tb_diag *diag);

#endif
