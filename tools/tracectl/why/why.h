/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl why: a first pass over a file finds the interval, a second one explains it.
 *
 * Memory    at most 1 GiB of spans.
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_WHY_WHY_H
#define TK_WHY_WHY_H

#include "online/why/interval.h"
#include "tools/tracectl/query/pass.h"

struct tk_why_ask {
  struct tk_place place; /* is opened more than once */
  struct to_why_ask of;
  bool json;
  unsigned rows; /* of each table; 0: all */
};

int tk_why_run(const struct tk_why_ask *ask);

#endif
