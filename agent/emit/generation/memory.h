/* SPDX-License-Identifier: Apache-2.0 */
/* Memory objects, traced as Go's runtime does with GODEBUG=traceallocfree=1: the AllocFree experiment, which any
 * reader of Go's traces accepts.
 *
 * An event's id is an address minus the program's base, in units of the object kind's alignment. So ids are small for a
 * heap right above the program; for mappings far above and for addresses below they are as large as addresses.
 * C has no types at run time: a type here is a size and, if the caller passed one, a name. Equal pairs are one type of
 * their generation; its number is the pair's slot in a table, which is filled by compare-and-swap.
 *
 * Memory freed by one thread may be allocated by another some hundred nanoseconds later, and only time orders the two: so
 * the clock is read only after the object's memory was read.
 *
 * Memory    static: 64 KiB a table, one for each parity of the generation, touched by threads that trace objects.
 * Threads   put: any that is in a section. write: the flusher, when no thread is in that generation.
 * Errors    if there is no room for a type, its id is 0, which means unknown.
 */
#ifndef TA_EMIT_GENERATION_MEMORY_H
#define TA_EMIT_GENERATION_MEMORY_H

#include "agent/emit/events/put.h"
#include "agent/emit/generation/generation.h"
#include "traceexperiment.h"

enum { TA_TYPES_MAX = 8192 };

void ta_memory_begin(void); /* begins a session's, when ta_emit.allocfree is set */
void ta_memory_put(struct ta_thread *t, enum ta_memory what, uintptr_t at, size_t bytes,
                   uint32_t name);
/* Writes how to read ids, and the generation's types; the table of types is empty afterwards. */
void ta_memory_write(struct ta_generation *k, uint32_t gen);

#endif
