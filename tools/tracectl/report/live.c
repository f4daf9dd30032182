/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/live.h"

#include "base/buf.h"
#include "tools/tracectl/term/tracectl.h"

/* Copies a reply, which is lent until the next request, through its packed form. */
static tb_rc keep_reply(const Tracecollect__V1__ReportReply *reply, bool sums_first,
                        struct tk_report_set *set) {
  struct tb_buf packed;
  tb_rc rc = TB_OK;

  tb_buf_init(&packed, &tk_mem);
  for (size_t i = 0; i < reply->n_reports && rc == TB_OK; i++) {
    tb_buf_clear(&packed);
    rc = tb_buf_reserve(&packed,
                        tracecollect__v1__stream_report__get_packed_size(reply->reports[i]));
    if (rc != TB_OK) break;
    packed.len = tracecollect__v1__stream_report__pack(reply->reports[i], packed.data);
    rc = tk_report_set_add(set, packed.data, packed.len);
    if (rc == TB_OK && sums_first && reply->reports[i]->instances > 0)
      rc = tk_report_set_is_sum(set);
  }
  tb_buf_fini(&packed);
  return rc;
}

tb_rc tk_report_live(struct tk_client *client, const struct tk_report_ask *ask,
                     const struct tk_selector *selector, struct tk_report_set *set,
                     struct tb_diag *diag) {
  static const char *const sums[] = {
    [TK_SUM_NONE] = "none", [TK_SUM_FIRST] = "first", [TK_SUM_ONLY] = "only"
  };
  const Tracecollect__V1__ReportReply *reply;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    if (!ask->kind[k]) continue;
    TB_TRY(tk_client_report(client, to_analysis_name((enum to_analysis_kind)k),
                            to_window_name(ask->window), selector, sums[ask->sum], diag, &reply));
    TB_TRY(keep_reply(reply, ask->sum == TK_SUM_FIRST, set));
  }
  return tk_report_set_live_first(set);
}
