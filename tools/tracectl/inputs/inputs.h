/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that a verb reads: files, or parts of them, or a collector's streams, which are fetched first.
 *
 * Memory    tk_inputs_close() releases places and temporary files; texts are lent from argv.
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_INPUTS_INPUTS_H
#define TK_INPUTS_INPUTS_H

#include "tools/tracectl/fetch/traces.h"
#include "tools/tracectl/query/pass.h"
#include "tools/tracectl/trace_file/trace_range.h"

struct tk_inputs {
  const char *verb;
  struct tk_client_args client;
  struct tk_selector selector;
  bool all, no_progress;
  bool is_remote; /* read a collector's streams, whatever the options */

  struct tk_place *place;
  size_t n;
  struct tk_fetched_traces fetched;
};

/* Rows for a verb's table; the field is a struct tk_inputs. */
extern const struct tk_option tk_inputs_options[];

/* Takes the options --tls-* from args, if all files are URLs, and gives them to the requests (tools/tracectl/url). */
void tk_inputs_give_tls(struct tk_client_args *args, char **files, int n_files);
/* "-" is not allowed as a file. */
int tk_inputs_open(struct tk_inputs *inputs, char **files, int n_files);
void tk_inputs_close(struct tk_inputs *inputs);

#endif
