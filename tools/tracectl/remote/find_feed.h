/* SPDX-License-Identifier: Apache-2.0 */
/* --server may name one socket, with a port of its own: the archive. The archive says where the feed is. */
#ifndef TK_REMOTE_FIND_FEED_H
#define TK_REMOTE_FIND_FEED_H

#include "tools/tracectl/remote/endpoint.h"

/* Moves where from the archive to the feed: by the same transport, and at the same host. TB_NOTFOUND: the feed does not
 * listen there. Else what tk_client_ask() answers. */
TB_MUST tb_rc tk_find_feed(const struct tk_client_args *args, struct tb_diag *diag,
                           struct tk_endpoint *where);

#endif
