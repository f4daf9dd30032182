/* SPDX-License-Identifier: Apache-2.0 */
/* The live feed: an nng PUB socket on listen.feed, where topics will be published.
 *
 * It accepts subscribers and is silent for now. ipc:// sockets get mode 0660; tls+tcp:// takes
 * reader certificates only, through our own engine (nng_engine.h).
 *
 * Threads   open and close on one thread; nng has threads of its own.
 * Errors    open: TB_IO with the URL and reason, TB_CORRUPT: certificates.
 */
#ifndef TC_FEED_H
#define TC_FEED_H

#include "collector/nng_listen.h"

struct tc_feed;

TB_MUST tb_rc tc_feed_open(const char *url, struct tc_nng_tls *tls, struct tb_diag *diag,
                           struct tc_feed **out);
void tc_feed_close(struct tc_feed *feed);

const char *tc_feed_url(const struct tc_feed *feed); /* with the real port, for the ready file */

#endif
