/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `tracectl tracepoints`. Each command is a row in cmd_tracepoints.c and a function of this type. */
#ifndef TK_TRACEPOINTS_TRACEPOINTS_H
#define TK_TRACEPOINTS_TRACEPOINTS_H

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/term/tracectl.h"

struct tk_tracepoints {
  const char *module, *out;
  struct tk_texts folders; /* -I */
  bool json;
  char **file; /* input files */
  int files;
};

typedef int tk_tracepoints_fn(const struct tk_tracepoints *ask);

tk_tracepoints_fn tk_tracepoints_gen, tk_tracepoints_list, tk_tracepoints_check,
    tk_tracepoints_experiment;

#endif
