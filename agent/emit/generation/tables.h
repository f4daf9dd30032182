/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a generation that is over: strings, stacks, locks and samples.
 *
 * Threads   the flusher's, when no other thread is in that generation.
 */
#ifndef TA_EMIT_GENERATION_TABLES_H
#define TA_EMIT_GENERATION_TABLES_H

#include "agent/emit/generation/generation.h"

/* wait_ns: longest wait for functions' names. */
void ta_tables_write(struct ta_generation *k, uint32_t gen, uint64_t wait_ns);

#endif
