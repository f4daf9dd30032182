/* SPDX-License-Identifier: Apache-2.0 */
/* nng_close() that ends. nng before 1.8 may wait in it for ever for a connection that was just ending (its issues 1543
 * and 1813; Debian 12 has 1.5.2), and the caller that closes is on the way out and has nothing to save.
 *
 * Threads   any; one of its own meanwhile.
 */
#ifndef TC_NNG_CLOSE_H
#define TC_NNG_CLOSE_H

#include <nng/nng.h>
#include <stdbool.h>

/* False: it has not closed within a second and is left to itself. Then what its callbacks use must stay. */
bool tc_nng_close(nng_socket socket);

#endif
