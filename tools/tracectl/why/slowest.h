/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which of several streams has the slowest task or region of a type, from their reports. */
#ifndef TK_WHY_SLOWEST_H
#define TK_WHY_SLOWEST_H

#include "online/analysis/analysis.h"
#include "tools/tracectl/remote/client.h"

/* Narrows selector to that stream, and --last to the time that has the task from its begin on; prints on stderr which. Live
 * streams come before ended ones; of these, what ended before the window does not count. Leaves the selector as it is if a stream
 * is selected, or if there is only one. TB_NOTFOUND: none has such a task; diag has the nearest type. Errors: the client's. */
TB_MUST tb_rc tk_why_slowest(struct tk_client *client, const char *verb, const char *type,
                             enum to_window window, struct tk_selector *selector,
                             struct tb_diag *diag);

#endif
