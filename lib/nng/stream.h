/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements of three functions for two faults of nng 1.x.
 *
 * A message is sent in parts: length and body, and as much of them as the socket accepts at once. When nng closes a pipe, it
 * forbids further operations. If a part is finished just then, the next part is refused, but nng_stream_send() returns as if
 * it had started: neither the operation nor the message ever ends. nng's only thread for freeing closed objects then waits
 * forever for this message. From then on no pipe of the process is freed, no descriptor closed, no NNG_PIPE_EV_REM_POST
 * called. One reader that disconnects in the middle of a message is enough. So nng_stream_send() and nng_stream_recv() end a
 * refused operation with NNG_ECONNRESET.
 *
 * nng also maps EPIPE to NNG_ECLOSED, its own close. A peer that disconnected before nng's greeting was sent stopped the
 * listener for good: it still greeted new peers, but served none of them, and kept their descriptors. So sendmsg(), by which
 * nng writes, returns ECONNRESET instead of EPIPE.
 *
 * The dynamic linker prefers a program's function to a library's of the same name, also for the library's own calls. The
 * functions here call the originals. A libnng that is linked with -Bsymbolic ignores them: test_stream fails then.
 *
 * Threads   any.
 */
#ifndef TC_NNG_STREAM_H
#define TC_NNG_STREAM_H

#include <nng/nng.h>

/* Links the functions into the program. Call it before the first socket is opened. */
void tc_nng_streams_init(void);

/* Returns the operation of this thread's last nng_stream_recv(). */
nng_aio *tc_nng_stream_last_recv(void);

#endif
