/* SPDX-License-Identifier: Apache-2.0 */
/* fetch --firing, --trigger: selects what a rule fired on.
 *
 * Errors    the client's; TB_NOTFOUND: no such firing; TB_BROKEN: usage. diag has the reason.
 */
#ifndef TK_FETCH_FIRING_H
#define TK_FETCH_FIRING_H

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/client.h"

struct tk_firing_ask {
  uint64_t id;      /* as in trigger history --json; 0: not given */
  const char *rule; /* selects the newest firing of this rule; NULL: not given */
};

static inline bool tk_firing_is_asked(const struct tk_firing_ask *ask) {
  return ask->id != 0 || ask->rule != NULL;
}
TB_MUST tb_rc tk_firing_check(const struct tk_firing_ask *ask, const struct tk_selector *selector,
                              struct tb_diag *diag);
/* Narrows the selector to the firing's stream, up to its generation, beginning with the previous one or, with selector->last_ns,
 * so long before its end. */
TB_MUST tb_rc tk_firing_select(struct tk_client *client, const struct tk_firing_ask *ask,
                               struct tk_selector *selector, struct tb_diag *diag);

#endif
