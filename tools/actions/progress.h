/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of each action: the id up to which its firings are done, in the file `progress` of the state folder, one line an action.
 * While other firings wait, a line for each rule that is further follows:
 *
 *     exec:page 1764271264000000000
 *     exec:page 1764271269000000000 slow
 *
 * Threads   any, except open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_REFUSED: another process uses the folder; TB_NOMEM.
 */
#ifndef AC_PROGRESS_H
#define AC_PROGRESS_H

#include <stdint.h>

#include "tools/actions/config.h"

struct ac_progress;

/* A file lost by its disk counts as missing; *out_wrong is cleared first and then says so. */
TB_MUST tb_rc ac_progress_open(const char *folder, struct tb_diag *diag, struct tb_diag *out_wrong,
                               struct ac_progress **out);
void ac_progress_free(struct ac_progress *progress); /* NULL is fine */

/* rule "": all rules. Returns 0 if nothing is stored. */
uint64_t ac_progress_of(struct ac_progress *progress, const char *action, const char *rule);
TB_MUST tb_rc ac_progress_note(struct ac_progress *progress, const char *action, const char *rule,
                               uint64_t id, struct tb_diag *diag);

#endif
