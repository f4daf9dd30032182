/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping quarantine/ small: unfinished generations are worth less than any segment, so they go by age and
 * size, and before the first segment where space is short. The oldest go first; other files stay. */
#ifndef TC_SEALER_RETENTION_QUARANTINE_H
#define TC_SEALER_RETENTION_QUARANTINE_H

#include "collector/sealer/retention/retention.h"

/* After tc_retention_round(): looks whether there is anything to do. */
void tc__quarantine_begin(struct tc__retaining *retaining);
/* Works at it until the monotonic clock says so. */
void tc__quarantine_go_on(struct tc__retaining *retaining, uint64_t until_ns);
void tc__quarantine_free(struct tc__quarantine *quarantine); /* what is under way */

#endif
