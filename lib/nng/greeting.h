/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline for the whole greeting of a peer on a unix socket. nng's timeout of 10 s starts again with each of the 8 bytes.
 * (For TLS see nng/arrivals.h.)
 *
 * Like nng/stream.h, this replaces a function of the C library: readv(), by which nng reads. A read after the deadline that
 * does not complete the greeting fails with ECONNRESET. So a slow peer has at most the deadline and nng's 10 s. A libnng that
 * reads in another way is not limited: test_accept fails then.
 *
 * Threads   any.
 */
#ifndef TC_NNG_GREETING_H
#define TC_NNG_GREETING_H

#include <stdint.h>

/* Sets the deadline, counted from the accept, for new connections. 0: none. */
void tc_nng_greeting_limit(uint64_t ms);

/* A connection was accepted on a unix socket, as fd. */
void tc__greeting_begin(int fd);

#endif
