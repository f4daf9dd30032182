/* SPDX-License-Identifier: Apache-2.0 */
/* Polls a collector each second and receives its alerts, on threads of its own, so that a collector that does not answer
 * never blocks the screen. Reconnects each second after a failure.
 *
 * Memory    owns the model, which is kept while the collector is away.
 * Threads   all calls from one thread. `fresh` is called on the poller's thread.
 * Errors    start: TB_BROKEN: usage; TB_NOMEM. For later ones see tk_poll_trouble().
 */
#ifndef TK_TOP_POLL_H
#define TK_TOP_POLL_H

#include "online/analysis/analysis.h"
#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/top/model.h"

struct tk_poll;

TB_MUST tb_rc tk_poll_start(const struct tk_client_args *args, const struct tk_selector *selector,
                            enum to_window window, void (*fresh)(void), struct tb_diag *diag,
                            struct tk_poll **out);
/* Returns false if the thread is in a request that may not end; nothing is freed in that case. */
bool tk_poll_stop(struct tk_poll *poll);

void tk_poll_set_window(struct tk_poll *poll, enum to_window window);

/* Selects a report, formatted for that many columns; TO_ANALYSIS_KINDS: none. */
void tk_poll_set_report(struct tk_poll *poll, enum to_analysis_kind kind, unsigned columns);

/* The caller may use the model between look() and done(). */
const struct tk_top_model *tk_poll_look(struct tk_poll *poll);
/* Call between look() and done(): returns why the answer is not fresh, or NULL. */
const char *tk_poll_trouble(const struct tk_poll *poll);
/* Call between look() and done(): returns why alerts are not received, or NULL. */
const char *tk_poll_deafness(const struct tk_poll *poll);
void tk_poll_done(struct tk_poll *poll);

#endif
