/* SPDX-License-Identifier: Apache-2.0 */
/* Makes nng use the monotonic clock. nng 1.5.2 uses the wall clock, contrary to its documentation. If that clock is set back
 * by a day, a running wait lasts a day: the pause of 100 ms after an error (a peer closed during the greeting, or no
 * descriptor is left), in which a listener accepts nobody, and the 10 s timeout of a silent peer.
 *
 * Replaces two functions of the C library for the whole process, as nng/stream.h does: clock_gettime() returns the monotonic
 * clock to nng, and pthread_condattr_init() sets that clock for nng's condition variables. nng is recognized by the address
 * of the caller, so libnng must be a shared library; test_clock fails if it is linked statically.
 *
 * Threads   any.
 */
#ifndef TC_NNG_CLOCK_H
#define TC_NNG_CLOCK_H

/* Call it to link the two functions into the program. */
void tc__clock_init(void);

#endif
