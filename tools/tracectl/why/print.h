/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation on standard output: a sentence and tables, or one line of JSON. */
#ifndef TK_WHY_PRINT_H
#define TK_WHY_PRINT_H

#include "explain/path_sum.h"
#include "explain/related.h"
#include "tools/tracectl/query/pass.h"
#include "tools/tracectl/why/interval.h"

struct tk_why {
  const struct tk_why_ask *ask;
  const struct tk_why_interval *interval;
  const struct tk_pass *pass; /* has the stacks */
  struct to_path path;
  struct to_path_sum sum;
  struct to_related related;
  double runnable; /* goroutines, on average, while the subject waited for a P */
  uint32_t procs;  /* 0: not known */
};

int tk_why_print(const struct tk_why *why);

#endif
