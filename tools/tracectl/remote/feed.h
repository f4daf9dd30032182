/* SPDX-License-Identifier: Apache-2.0 */
/* A collector's feed, over nng SUB. The collector reports its address; the host is the one at which it was reached.
 *
 * nng reconnects by itself if the connection is lost.
 *
 * Threads   one.
 * Errors    open: the client's; TB_NOTFOUND: the feed has no address that can be reached from here; TB_REFUSED: one side's TLS
 *           refuses the other. receive: TB_AGAIN: no message for a while; TB_IO: the connection was lost.
 */
#ifndef TK_REMOTE_FEED_H
#define TK_REMOTE_FEED_H

#include <nng/nng.h>

#include "tools/tracectl/remote/client.h"

struct tk_feed;

/* topic: prefix of the topics. */
TB_MUST tb_rc tk_feed_open(const struct tk_client_args *args, const char *topic,
                           struct tb_diag *diag, struct tk_feed **out);
void tk_feed_close(struct tk_feed *feed); /* accepts NULL */

/* wait: up to half a second; if false, returns at once. */
TB_MUST tb_rc tk_feed_receive(struct tk_feed *feed, bool wait, struct tb_diag *diag, nng_msg **out);

#endif
