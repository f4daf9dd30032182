/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/feed.h"

#include <nng/protocol/pubsub0/pub.h>
#include <stdlib.h>

enum {
  RECEIVE_BYTES_MAX = 4 << 10
}; /* subscribers have nothing to say; nng's default is no limit */

struct tc_feed {
  nng_socket socket;
  struct tc_nng_listener *listener;
};

tb_rc tc_feed_open(const char *url, struct tc_nng_tls *tls, struct tb_diag *diag,
                   struct tc_feed **out) {
  struct tc_feed *feed = calloc(1, sizeof *feed);

  if (feed == NULL || nng_pub0_open(&feed->socket) != 0) {
    free(feed);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  int rv = nng_socket_set_size(feed->socket, NNG_OPT_RECVMAXSZ, RECEIVE_BYTES_MAX);
  tb_rc rc = rv == 0 ? tc_nng_listen(feed->socket, url, tls, diag, &feed->listener)
                     : tb_fail(diag, TB_IO, "%.120s: %s", url, nng_strerror(rv));
  if (rc != TB_OK) {
    tc_feed_close(feed);
    return rc;
  }
  *out = feed;
  return TB_OK;
}

void tc_feed_close(struct tc_feed *feed) {
  if (feed == NULL) return;
  tc_nng_listener_close(feed->listener);
  nng_close(feed->socket);
  free(feed);
}

const char *tc_feed_url(const struct tc_feed *feed) {
  return tc_nng_listener_url(feed->listener);
}
