/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline for the whole greeting of a peer on a unix socket. nng has one of 10 s, which begins anew with each of its
 * 8 bytes. (Over TLS the engine has one: nng/arrivals.h.)
 *
 * As with nng/stream.h, a function of the C library is defined here, too: nng reads by readv(), and finds ours. A read that comes
 * after the deadline and does not end the greeting is an ECONNRESET. So a slow peer has the deadline and nng's 10 s at most. A
 * libnng that reads otherwise does not come by here: test_accept fails with it.
 *
 * Threads   any.
 */
#ifndef TC_NNG_GREETING_H
#define TC_NNG_GREETING_H

#include <stdint.h>

/* From the accept on; for those that come from now on. 0: none. */
void tc_nng_greeting_limit(uint64_t ms);

/* One was accepted on a unix socket, as fd. */
void tc__greeting_begin(int fd);

#endif
