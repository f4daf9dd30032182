/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls the host's seccomp filter lets us make and live.
 *
 * A filter may answer an unknown call with an error, which the caller handles, or with the end of the process. The
 * kernel does not say which. So where this thread has a filter (/proc/thread-self/status, "Seccomp: 2") a call
 * outside the common ones is made by a throw-away child first; if that dies, the call is not made here. The child is
 * a plain clone without a signal for its end: the host's SIGCHLD handler and its wait() never see it. A host may add
 * a filter at any time, so the number of filters is looked at each time, and an answer holds as long as that number
 * does.
 *
 * docs/OPERATIONS.md lists the common calls, which are made without asking.
 *
 * Cost      without a filter a system call, prctl(); with one, 30 us to read the number. A child: a fork().
 * Threads   any.
 */
#ifndef TA_HOST_FILTER_H
#define TA_HOST_FILTER_H

#include <stdbool.h>

/* Arguments as the call will have them: filters look at them, too. Its actions in the child must have no consequence.
 * False: it would end the process, or nothing can be found out. */
bool ta_filter_spares(long call, long a, long b, long c);

#endif
