/* SPDX-License-Identifier: Apache-2.0 */
/* Gives nng the monotonic clock. nng 1.5.2 takes the wall clock, against its own documentation. If that is set back by a day, each
 * wait that had begun lasts a day: a listener's pause of 100 ms after an error (a peer hung up in its greeting, no descriptor is left)
 * and the 10 s that a silent peer has. A listener that pauses accepts no peer.
 *
 * Two functions of the C library are replaced for the whole process, as in nng/stream.h: clock_gettime(), which answers nng with the
 * monotonic clock, and pthread_condattr_init(), which sets that clock for nng's condition variables. nng's calls are known by the
 * caller's address, so libnng must be a shared library; test_clock fails if it is linked into the program.
 *
 * Threads   any.
 */
#ifndef TC_NNG_CLOCK_H
#define TC_NNG_CLOCK_H

/* Brings the two into the program. */
void tc__clock_init(void);

#endif
