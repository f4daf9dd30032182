/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a thread sleep until another one wakes it; wakes coalesce into one system call.
 *
 * Threads   tc_wakeup_wake() from any, tc_wakeup_sleep() from the one that owns it.
 */
#ifndef TC_BASE_WAKEUP_H
#define TC_BASE_WAKEUP_H

#include <stdatomic.h>

#include "base/result.h"

struct tc_wakeup {
  int fd; /* eventfd */
  atomic_bool asleep;
};

TB_MUST tb_rc tc_wakeup_init(struct tc_wakeup *wakeup, struct tb_diag *diag);
void tc_wakeup_fini(struct tc_wakeup *wakeup); /* accepts one whose fd is -1 */
void tc_wakeup_wake(void *wakeup);             /* wakeup: a struct tc_wakeup */

/* Sleeps until woken, at most timeout_ns. Does not sleep if work(self) returns true; work may be NULL. */
void tc_wakeup_sleep(struct tc_wakeup *wakeup, uint64_t timeout_ns, bool (*work)(void *self),
                     void *self);

#endif
