/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that may not read the processor's counter: rdtsc ends a thread that has asked for that (prctl PR_SET_TSC), and so
 * does the vdso's clock, which reads it. The process goes by the kernel's clock then (agent/host/clock.h): a system call
 * where there was none. Our own threads allow themselves the counter, because OpenSSL reads it, too.
 *
 * Threads   any. The prohibition is each thread's own, and those that it makes inherit it.
 */
#ifndef TA_HOST_COUNTER_H
#define TA_HOST_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool ta_counter_is_off; /* for the process, and for good */

/* Before the first look at a clock: asks for this thread. */
void ta_counter_ask(void);
/* Allows it to this thread again; answers whether it was forbidden. */
bool ta_counter_allow(void);
void ta_counter_forbid(void);

#endif
