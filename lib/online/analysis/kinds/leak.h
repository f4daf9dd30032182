/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TO_ANALYSIS_LEAK_H
#define TO_ANALYSIS_LEAK_H

#include "online/analysis/analysis_state.h"

/* Returns true if the goroutines that wait at the stack with this number are a leak now. */
bool to__leak_is_at(const struct to_analyses *a, uint32_t stack);

#endif
