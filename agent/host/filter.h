/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which system calls the host's seccomp filter permits without killing the process.
 *
 * A filter may answer an unknown call with an error, which the caller handles, or by killing the process, and the kernel
 * does not tell which. So if this thread has a filter (/proc/thread-self/status, "Seccomp: 2"), a throw-away child makes
 * an uncommon call first; if the child dies, the call is not made here. The child is a plain clone without an exit
 * signal: the host's SIGCHLD handler and its wait() never see it. A host may add a filter at any time, so the number of
 * filters is read each time, and a known result holds as long as that number does not change.
 *
 * docs/OPERATIONS.md lists the common calls, which are made without this check.
 *
 * Cost      without a filter a system call, prctl(); with one, 30 us to read the number. A child: a fork().
 * Threads   any.
 */
#ifndef TA_HOST_FILTER_H
#define TA_HOST_FILTER_H

#include <stdbool.h>

/* Pass the arguments of the real call, since filters check them, too; the call must have no effect outside the child.
 * Returns false if the call would kill the process or this cannot be found out. */
bool ta_filter_spares(long call, long a, long b, long c);

#endif
