/* SPDX-License-Identifier: Apache-2.0 */
/* nng_close() with a timeout. Before nng 1.8 nng_close() may wait forever for a connection that was just ending (nng issues
 * 1543 and 1813; Debian 12 has 1.5.2). For callers that are shutting down.
 *
 * Threads   any; starts a thread.
 */
#ifndef TC_NNG_CLOSE_H
#define TC_NNG_CLOSE_H

#include <nng/nng.h>
#include <stdbool.h>

/* Returns false if the socket was not closed within a second. Then memory that its callbacks use must not be freed. */
bool tc_nng_close(nng_socket socket);

#endif
