/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/remote.h"

#include <stdio.h>
#include <string.h>

#include "tools/tracectl/term/tracectl.h"

enum { PAGE_SEGMENTS = 10000, PLACE_BYTES = 128 };

int tk_remote_fail(const char *verb, tb_rc rc, const struct tb_diag *diag) {
  const char *text = diag->rc != TB_OK ? diag->text : tb_rc_text(rc);

  return rc == TB_BROKEN ? tk_usage(verb, "%s", text) : tk_fail(verb, "%s", text);
}

tb_rc tk_remote_list(struct tk_client *client, const struct tk_list_ask *ask, tk_list_fn *each,
                     void *self, struct tb_diag *diag) {
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  const Tracecollect__V1__ListReply *page;
  Tracecollect__V1__Selector which;
  char place[PLACE_BYTES];

  tk_selector_message(ask->selector, &which);
  list.selector = &which;
  list.settle = ask->settle;
  list.detail = ask->detail;
  list.newest_first = ask->newest_first;
  list.limit = ask->limit != 0 && ask->limit < PAGE_SEGMENTS ? (uint32_t)ask->limit : PAGE_SEGMENTS;
  for (bool more = true; more;) {
    TB_TRY(tk_client_ask(client, TP_ROUTE_SEGMENTS, "", &list.base, diag, &page));
    more = page->more && page->n_segments > 0;
    snprintf(place, sizeof place, "%s", page->next); /* copied: page is lent */
    list.place = place;
    list.settle = false;
    TB_TRY(each(self, page));
  }
  return TB_OK;
}
