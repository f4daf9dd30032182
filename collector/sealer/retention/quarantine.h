/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps quarantine/ small: unfinished generations are worth less than any segment, so they are deleted by age and size, and
 * before the first segment if space is short. The oldest are deleted first; files with other names stay. */
#ifndef TC_SEALER_RETENTION_QUARANTINE_H
#define TC_SEALER_RETENTION_QUARANTINE_H

#include "collector/sealer/retention/retention.h"

/* Begins a pass if there may be anything to delete; called after tc_retention_round(). */
void tc__quarantine_begin(struct tc__retaining *retaining);
void tc__quarantine_go_on(struct tc__retaining *retaining, uint64_t until_ns); /* one slice */
/* Frees a pass that is in progress, if there is one. */
void tc__quarantine_free(struct tc__quarantine *quarantine);

#endif
