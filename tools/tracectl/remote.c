/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote.h"

#include "tools/tracectl/tracectl.h"

int tk_remote_fail(const char *verb, tb_rc rc, const struct tb_diag *diag) {
  const char *text = diag->rc != TB_OK ? diag->text : tb_rc_text(rc);

  return rc == TB_BROKEN ? tk_usage(verb, "%s", text) : tk_fail(verb, "%s", text);
}

tb_rc tk_remote_option(struct tk_client_args *args, struct tk_selector *selector, int option,
                       const char *value, struct tb_diag *diag) {
  if (tk_client_option(args, option, value)) return TB_OK;
  return tk_selector_option(selector, option, value, diag);
}

tb_rc tk_remote_list(struct tk_client *client, const struct tk_list_ask *ask, tk_list_fn *each,
                     void *self, struct tb_diag *diag) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__Selector which;
  const Tracecollect__V1__Reply *reply;

  tk_selector_message(ask->selector, &which);
  list.selector = &which;
  list.settle = ask->settle;
  list.detail = ask->detail;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_LIST;
  request.list = &list;
  for (bool more = true; more;) {
    TB_TRY(tk_client_ask(client, &request, diag, &reply));
    const Tracecollect__V1__ListReply *page = reply->list;
    more = page->more && page->n_segments > 0;
    if (more)
      list.after = page->segments[page->n_segments - 1]->id; /* page is lent: before each() */
    list.settle = false;
    TB_TRY(each(self, page));
  }
  return TB_OK;
}
