/* SPDX-License-Identifier: Apache-2.0 */
/* nng's time is the monotonic clock's. nng 1.5.2 takes the wall clock, against its own documentation. Where that is set back by a
 * day, each wait that had begun lasts a day: a listener's pause of 100 ms after an error, be it a peer that hung up in its greeting or
 * the want of a descriptor, and the 10 s that a silent peer has. A listener that pauses lets nobody in.
 *
 * As with nng/stream.h, functions of the C library are defined here, too, and every library of the process comes by: clock_gettime(),
 * where nng gets another clock than it asks for, and pthread_condattr_init(), by which its condition variables wait by that
 * one. nng is known by the address it calls from; a libnng that is linked into the program is not: test_clock fails with it.
 *
 * Threads   any.
 */
#ifndef TC_NNG_CLOCK_H
#define TC_NNG_CLOCK_H

/* Brings the two into the program. */
void tc__clock_init(void);

#endif
