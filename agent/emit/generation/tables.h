/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a generation that is over: its strings, its stacks and its samples.
 *
 * Threads the flusher's, when no thread is in that generation.
 */
#ifndef TA_EMIT_GENERATION_TABLES_H
#define TA_EMIT_GENERATION_TABLES_H

#include "agent/emit/generation/generation.h"

/* Function names are waited for at most so long. */
void ta_tables_write(struct ta_generation *k, uint32_t gen, uint64_t wait_ns);

#endif
