/* SPDX-License-Identifier: Apache-2.0 */
/* nng's streams, without the operation that nng loses.
 *
 * A message goes over a stream in parts: its length and its body, and as much of them as the socket takes at once. nng 1.x
 * forbids a pipe's operations when it closes the pipe. If one part is done just then, the next one is refused, and
 * nng_stream_send() returns as if it had begun: neither the operation nor the message ever ends. The one thread of nng
 * that frees what is closed then waits for that message for ever. From there on no pipe of the process is freed,
 * no descriptor closed, no NNG_PIPE_EV_REM_POST called. It takes one reader that ends in the middle of a message.
 *
 * And nng calls EPIPE what it calls its own end: NNG_ECLOSED. A peer that hung up before nng's greeting went out stopped the
 * listener for good (it still greeted; who came then was heard by nobody, and kept its descriptor when it left). So sendmsg(),
 * by which nng writes, says ECONNRESET, which an end of the peer's is.
 *
 * So nng_stream_send() and nng_stream_recv() are defined here, too. The dynamic linker prefers a program's function
 * to a library's of the same name, for the library's own calls as well. Ours call nng's, and end with NNG_ECONNRESET what
 * nng refused. A libnng that is linked with -Bsymbolic does not come by here: test_stream fails with it.
 *
 * Threads   any: those that call nng's.
 */
#ifndef TC_NNG_STREAM_H
#define TC_NNG_STREAM_H

#include <nng/nng.h>

/* Brings the two into the program: to be called before the first socket is opened. */
void tc_nng_streams_init(void);

/* The operation of this thread's last nng_stream_recv(). */
nng_aio *tc_nng_stream_last_recv(void);

#endif
