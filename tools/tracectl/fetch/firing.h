/* SPDX-License-Identifier: Apache-2.0 */
/* fetch --firing, --trigger: what a rule fired on.
 *
 * Errors    the client's; TB_NOTFOUND: nothing has fired so; TB_BROKEN: usage. diag says which.
 */
#ifndef TK_FETCH_FIRING_H
#define TK_FETCH_FIRING_H

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/client.h"

struct tk_firing_ask {
  uint64_t id;      /* as trigger history --json has it; 0: none is named */
  const char *rule; /* the newest firing of this one, in what is selected; NULL: none is named */
};

static inline bool tk_firing_is_asked(const struct tk_firing_ask *ask) {
  return ask->id != 0 || ask->rule != NULL;
}
TB_MUST tb_rc tk_firing_check(const struct tk_firing_ask *ask, const struct tk_selector *selector,
                              struct tb_diag *diag);
/* Narrows the selector down: to the firing's stream, up to its generation; from the one before it on, or since selector->last_ns
 * before its end. */
TB_MUST tb_rc tk_firing_select(struct tk_client *client, const struct tk_firing_ask *ask,
                               struct tk_selector *selector, struct tb_diag *diag);

#endif
