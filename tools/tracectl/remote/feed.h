/* SPDX-License-Identifier: Apache-2.0 */
/* A collector's feed, over nng SUB. Where it is, the collector says; its host is the one at which the collector was reached.
 *
 * Once connected nng dials again by itself when the connection is lost.
 *
 * Threads   one.
 * Errors    open: the client's; TB_NOTFOUND: the feed does not listen where it could be reached from here; TB_REFUSED: either
 *           side's TLS does not take the other. receive: TB_AGAIN: nothing for a while; TB_IO: the connection was lost.
 */
#ifndef TK_REMOTE_FEED_H
#define TK_REMOTE_FEED_H

#include <nng/nng.h>

#include "tools/tracectl/remote/client.h"

struct tk_feed;

/* topic: the beginning of those that are wanted. */
TB_MUST tb_rc tk_feed_open(const struct tk_client_args *args, const char *topic,
                           struct tb_diag *diag, struct tk_feed **out);
void tk_feed_close(struct tk_feed *feed); /* accepts NULL */

/* wait: up to half a second, else what is there. */
TB_MUST tb_rc tk_feed_receive(struct tk_feed *feed, bool wait, struct tb_diag *diag, nng_msg **out);

#endif
