/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl report why: the critical path of an interval, in words and as tables. A second pass over the file keeps what its
 * goroutines did in the interval.
 *
 * Memory    at most 1 GiB for what is kept.
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_WHY_WHY_H
#define TK_WHY_WHY_H

#include "tools/tracectl/why/interval.h"

int tk_why_run(const struct tk_why_ask *ask);

#endif
