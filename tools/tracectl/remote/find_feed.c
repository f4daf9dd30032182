/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/find_feed.h"

#include <stdio.h>
#include <string.h>

typedef Tracecollect__V1__StatusReply status_reply;

static size_t scheme_length(const char *url) {
  const char *end = strstr(url, "://");

  return end != NULL ? (size_t)(end - url) : 0;
}

static bool is_by_same_transport(const char *a, const char *b) {
  size_t n = scheme_length(a);

  return n > 0 && n == scheme_length(b) && strncmp(a, b, n) == 0;
}

/* The collector's own name of its host may be 0.0.0.0: the reader's is known to lead there. */
static tb_rc move_to_port_of(const char *feed, struct tb_diag *diag, struct tk_endpoint *where) {
  bool is_ipv6 = strchr(where->at.host, ':') != NULL;
  struct tb_hostport at;
  char url[TK_URL_BYTES];

  if (where->ipc) return tk_endpoint_set(feed, diag, where);
  TB_TRY(tb_hostport_parse(strstr(feed, "://") + 3, diag, &at));
  snprintf(url, sizeof url, "%.*s://%s%s%s:%u", (int)scheme_length(feed), feed, is_ipv6 ? "[" : "",
           where->at.host, is_ipv6 ? "]" : "", at.port);
  return tk_endpoint_set(url, diag, where);
}

static tb_rc move(const status_reply *status, struct tb_diag *diag, struct tk_endpoint *where) {
  for (size_t i = 0; i < status->n_feed_urls; i++)
    if (is_by_same_transport(status->feed_urls[i], where->url))
      return move_to_port_of(status->feed_urls[i], diag, where);
  if (status->n_feed_urls == 0)
    return tb_fail(diag, TB_NOTFOUND,
                   "%.80s: this collector does not say where its feed is: give --server HOST or "
                   "@READYFILE",
                   where->shown);
  return tb_fail(diag, TB_NOTFOUND,
                 "%.60s: the feed is not open to it: listen.feed has only %.80s%s", where->shown,
                 status->feed_urls[0], status->n_feed_urls > 1 ? ", ..." : "");
}

static tb_rc ask(struct tk_client *client, struct tb_diag *diag, struct tk_endpoint *where) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__StatusRequest status = TRACECOLLECT__V1__STATUS_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;

  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_STATUS;
  request.status = &status;
  TB_TRY(tk_client_ask(client, &request, diag, &reply));
  return move(reply->status, diag, where);
}

tb_rc tk_find_feed(const struct tk_client_args *args, struct tb_diag *diag,
                   struct tk_endpoint *where) {
  struct tk_client *client;

  TB_TRY(tk_client_open(args, diag, &client));
  tb_rc rc = ask(client, diag, where);
  tk_client_close(client);
  return rc;
}
