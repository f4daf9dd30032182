/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that a verb reads: files, or parts of them; or what a collector has of some streams, brought here first.
 *
 * A verb puts TK_INPUTS_OPTIONS into its getopt_long() table and hands each option it does not know to tk_inputs_option().
 *
 * Memory    tk_inputs_close() gives back places and temporary files; texts are lent from argv.
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_INPUTS_INPUTS_H
#define TK_INPUTS_INPUTS_H

#include "tools/tracectl/fetch/traces.h"
#include "tools/tracectl/query/pass.h"
#include "tools/tracectl/trace_file/trace_range.h"

enum { TK_OPT_ALL = 0x3000, TK_OPT_NO_PROGRESS };
#define TK_INPUTS_OPTIONS                                                                          \
  { "all", no_argument, NULL, TK_OPT_ALL },                                                        \
      { "no-progress", no_argument, NULL, TK_OPT_NO_PROGRESS },                                    \
      { "from", required_argument, NULL, TK_OPT_FROM },                                            \
      { "to", required_argument, NULL, TK_OPT_TO }, TK_SELECTOR_OPTIONS, TK_CLIENT_OPTIONS

struct tk_inputs {
  const char *verb;
  struct tk_client_args client;
  struct tk_selector selector;
  bool all, no_progress;
  bool is_remote; /* an option was given that chooses a collector's streams */

  struct tk_place *place;
  size_t n;
  struct tk_fetched_traces fetched;
};

int tk_inputs_option(struct tk_inputs *inputs, int option, const char *value);
/* None of the files may be "-". */
int tk_inputs_open(struct tk_inputs *inputs, char **files, int n_files);
void tk_inputs_close(struct tk_inputs *inputs);

#endif
