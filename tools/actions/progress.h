/* SPDX-License-Identifier: Apache-2.0 */
/* How far each action has come: the id up to which its firings are over, in the file `progress` of the state folder, a line an action; and behind
 * it, while others wait, a line for each rule that is further:
 *
 *     exec:page 1764271264000000000
 *     exec:page 1764271269000000000 slow
 *
 * Threads   any, but for open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_REFUSED: another has the folder, and would do everything twice; TB_NOMEM.
 */
#ifndef AC_PROGRESS_H
#define AC_PROGRESS_H

#include <stdint.h>

#include "tools/actions/config.h"

struct ac_progress;

/* A file that the disk has lost counts as none; *out_wrong says so, and is cleared first. */
TB_MUST tb_rc ac_progress_open(const char *folder, struct tb_diag *diag, struct tb_diag *out_wrong,
                               struct ac_progress **out);
void ac_progress_free(struct ac_progress *progress); /* NULL is fine */

/* rule "": of all rules. 0: none is noted. */
uint64_t ac_progress_of(struct ac_progress *progress, const char *action, const char *rule);
TB_MUST tb_rc ac_progress_note(struct ac_progress *progress, const char *action, const char *rule,
                               uint64_t id, struct tb_diag *diag);

#endif
