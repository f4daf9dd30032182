/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the verbs that send requests to a collector: error messages, names, and paging. */
#ifndef TK_REMOTE_REMOTE_H
#define TK_REMOTE_REMOTE_H

#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/remote/names.h"

/* Prints diag on stderr. Returns TK_USAGE for a usage error, else TK_FAILED. */
int tk_remote_fail(const char *verb, tb_rc rc, const struct tb_diag *diag);

/* Reads every page of the list; each() gets a lent page. A code other than TB_OK ends it. */
struct tk_list_ask {
  const struct tk_selector *selector;
  bool settle, detail;
  bool newest_first; /* if the collector supports it: the page says so */
  size_t limit;      /* number of segments that are needed, to request less at a time; 0: all */
};
typedef tb_rc tk_list_fn(void *self, const Tracecollect__V1__ListReply *page);
TB_MUST tb_rc tk_remote_list(struct tk_client *client, const struct tk_list_ask *ask,
                             tk_list_fn *each, void *self, struct tb_diag *diag);

#endif
