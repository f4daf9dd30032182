/* SPDX-License-Identifier: Apache-2.0 */
/* A moment as a table for people, or a JSON object for each goroutine. */
#ifndef TK_STATE_PRINT_H
#define TK_STATE_PRINT_H

#include "tools/tracectl/state/moment.h"

/* rows: 0 for all. */
void tk_moment_print(const struct tk_moment *moment, const char *name, size_t rows);
/* False: no memory. */
bool tk_moment_print_json(const struct tk_moment *moment, const char *name);

#endif
