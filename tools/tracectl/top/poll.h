/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a collector each second and hears its alerts, on threads of its own: a collector that does not answer, or is
 * being restarted, never holds up the screen. After a fault it is dialled again, each second.
 *
 * Memory    owns the model; what was known stays while the collector is away.
 * Threads   all calls from one thread. `fresh` is called on the poller's own.
 * Errors    start: TB_BROKEN: usage; TB_NOMEM. Later faults are tk_poll_trouble()'s.
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
/* False: it is in the middle of a wait that has no end yet, and the poller stays as it is. */
bool tk_poll_stop(struct tk_poll *poll);

void tk_poll_set_window(struct tk_poll *poll, enum to_window window);

/* Shows reports of this kind, so many columns wide; TO_ANALYSIS_KINDS: none. */
void tk_poll_set_report(struct tk_poll *poll, enum to_analysis_kind kind, unsigned columns);

/* The model is the caller's from look() to done(). */
const struct tk_top_model *tk_poll_look(struct tk_poll *poll);
/* Between the two: why there is no fresh answer, in words; NULL: there is one. */
const char *tk_poll_trouble(const struct tk_poll *poll);
/* Likewise: why no alerts are heard. */
const char *tk_poll_deafness(const struct tk_poll *poll);
void tk_poll_done(struct tk_poll *poll);

#endif
