/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that forbid themselves the processor's counter: after prctl(PR_SET_TSC) the instruction rdtsc kills the thread,
 * and so does the vdso's clock, which uses rdtsc. The agent then reads the clock by system calls (agent/host/clock.h).
 * Its own threads allow themselves the counter, because OpenSSL reads it, too.
 *
 * Threads   any. The prohibition applies to one thread; threads that it creates inherit it.
 */
#ifndef TA_HOST_COUNTER_H
#define TA_HOST_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool ta_counter_is_off; /* for the process, and for good */

/* Checks this thread's prohibition; call it before the first reading of a clock. */
void ta_counter_ask(void);
/* Allows this thread the counter again; returns whether it was forbidden. */
bool ta_counter_allow(void);
void ta_counter_forbid(void);

#endif
