/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in a simulation.
 *
 * memory.c has functions of malloc's names: what the store, the protocol and the libraries below them ask for is asked
 * of the world first, which may have none (struct sim_world, no_memory). The machine itself, its disk and its wires,
 * takes its own from here: of that there is always enough.
 *
 * Memory    free() for all of it.
 * Threads   one.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* This allocation of the store's fails: errno says so. caller: an address in who asks. */
bool sim_is_short(const void *caller);

/* Never NULL: a simulation without memory has no answer, and ends. */
void *sim_malloc(size_t bytes);
void *sim_calloc(size_t n, size_t bytes);
void *sim_reallocarray(void *old, size_t n, size_t bytes);

#endif
