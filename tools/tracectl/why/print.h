/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an explanation: a sentence and tables, or JSON. */
#ifndef TK_WHY_PRINT_H
#define TK_WHY_PRINT_H

#include "online/why/why.h"
#include "tools/tracectl/why/why.h"

int tk_why_print(const struct tk_why_ask *ask, const struct to_why *why);

#endif
