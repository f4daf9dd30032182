/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the command of an action: no shell, the text on its stdin, stdout and stderr inherited. It is killed after AC_EXEC_S, together with
 * all processes that it started, whatever their group or session. Exit code 0 is success, 75 (EX_TEMPFAIL) asks for another try. */
#ifndef AC_EXEC_H
#define AC_EXEC_H

#include "tools/actions/deliver.h"

enum { AC_EXEC_S = 60 };

/* Returns AC_LATER with diag->rc TB_BUSY if stop_fd became readable; the command was killed then. */
enum ac_outcome ac_exec(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                        struct tb_diag *diag);

#endif
