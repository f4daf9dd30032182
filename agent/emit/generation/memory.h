/* SPDX-License-Identifier: Apache-2.0 */
/* Memory objects, traced as Go's runtime does with GODEBUG=traceallocfree=1: the AllocFree experiment, which any
 * reader of Go's traces takes.
 *
 * An event's id is an address, less where the program itself begins, in units of what such things are aligned to. So
 * the ids of a heap that grows behind the program are small, and those of mappings far above, or of something below,
 * are whole addresses. C knows no types: here it is a size and, if the caller gave one, a name. Two
 * that are equal in both are one type of their generation, by the place of the two in a table, which is taken by
 * compare-and-swap.
 *
 * Memory that one thread frees may be another's some hundred nanoseconds later, and only time says which came first:
 * the clock is read when the object has been.
 *
 * Memory    static: 64 KiB a table, one for each parity of the generation, touched by threads that trace objects.
 * Threads   put: any that is in a section. write: the flusher, when no thread is in that generation.
 * Errors    no room for a type: 0, which stands for "none said".
 */
#ifndef TA_EMIT_GENERATION_MEMORY_H
#define TA_EMIT_GENERATION_MEMORY_H

#include "agent/emit/events/put.h"
#include "agent/emit/generation/generation.h"
#include "traceexperiment.h"

enum { TA_TYPES_MAX = 8192 };

void ta_memory_begin(void); /* of a session, when it is known whether it traces them */
void ta_memory_put(struct ta_thread *t, enum ta_memory what, uintptr_t at, size_t bytes,
                   uint32_t name);
/* How to read ids, and the generation's types, whose table is empty afterwards. */
void ta_memory_write(struct ta_generation *k, uint32_t gen);

#endif
