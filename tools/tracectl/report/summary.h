/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences on what stands out (pack/summary), of a trace file or of a collector, as text or JSON.
 *
 * Errors    on stderr; enum tk_exit. */
#ifndef TK_REPORT_SUMMARY_H
#define TK_REPORT_SUMMARY_H

#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/report/set.h"

/* Prints what stands out in a file. Returns enum tk_exit. */
int tk_summarize_file(struct tk_report_ask *ask, const char *path, bool is_json);
/* The same of a collector's streams. */
int tk_summarize_live(const struct tk_report_ask *ask, struct tk_selector *selector,
                      const struct tk_client_args *at, bool is_json);
/* The same, as the first lines of `report all`, whose reports are in the set; of a collector. */
int tk_summary_lead_file(struct tk_report_set *set, const char *path);
TB_MUST tb_rc tk_summary_lead(struct tk_client *client, const struct tk_selector *selector,
                              enum to_window window, const struct tk_client_args *at, bool is_json,
                              struct tb_diag *diag);

/* Notes the findings of a trace at the end of a generation: each once, with its words when it was largest. */
TB_MUST tb_rc tk_summary_note(struct tk_report_set *set, struct to_analyses *analyses);

#endif
