/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a thread sleep until another has something for it; wakes coalesce into one system call.
 *
 * Threads   tc_waker_wake() from any, tc_waker_sleep() from the one that owns it.
 */
#ifndef TC_BASE_WAKEUP_H
#define TC_BASE_WAKEUP_H

#include <stdatomic.h>

#include "base/result.h"

struct tc_waker {
  int fd; /* eventfd */
  atomic_bool asleep;
};

TB_MUST tb_rc tc_waker_init(struct tc_waker *waker, struct tb_diag *diag);
void tc_waker_fini(struct tc_waker *waker); /* accepts one whose fd is -1 */
void tc_waker_wake(void *waker);            /* struct tc_waker; fits struct tc_mailbox */

/* Sleeps until woken, at most timeout_ns; work(self) true: there is something already, do not
 * sleep; NULL: sleep in any case. */
void tc_waker_sleep(struct tc_waker *waker, uint64_t timeout_ns, bool (*work)(void *self),
                    void *self);

#endif
