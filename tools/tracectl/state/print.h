/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a moment: a table for people, or a JSON object for each goroutine. */
#ifndef TK_STATE_PRINT_H
#define TK_STATE_PRINT_H

#include "tools/tracectl/state/moment.h"

/* rows: 0 for all. */
void tk_moment_print(const struct tk_moment *moment, const char *name, size_t rows);
/* Returns false if memory cannot be allocated. */
bool tk_moment_print_json(const struct tk_moment *moment, const char *name);

#endif
