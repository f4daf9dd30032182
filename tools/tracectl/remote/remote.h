/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the verbs that ask a collector: failing in the same words, and asking in pages. */
#ifndef TK_REMOTE_REMOTE_H
#define TK_REMOTE_REMOTE_H

#include "tools/tracectl/remote/client.h"

/* Says diag on stderr; TK_USAGE for a usage error, else TK_FAILED. */
int tk_remote_fail(const char *verb, tb_rc rc, const struct tb_diag *diag);

/* Why nothing matched, if that is a service that no stream has: "no service \"chekout\"; did you mean \"checkout\"?".
 * Else, and where the collector does not answer, otherwise as it is. Lent until the next call. */
const char *tk_remote_no_match(struct tk_client *client, const struct tk_selector *selector,
                               const char *otherwise);

/* Every page of the list; each gets one lent answer. A code other than TB_OK ends it. */
struct tk_list_ask {
  const struct tk_selector *selector;
  bool settle, detail;
  bool newest_first; /* if the collector can: the page says so */
  size_t limit;      /* of segments that are wanted, to ask for less at a time; 0: all */
};
typedef tb_rc tk_list_fn(void *self, const Tracecollect__V1__ListReply *page);
TB_MUST tb_rc tk_remote_list(struct tk_client *client, const struct tk_list_ask *ask,
                             tk_list_fn *each, void *self, struct tb_diag *diag);

#endif
