/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in a simulation.
 *
 * memory.c replaces malloc and its kin: an allocation of the store, the protocol or a library below them first asks the
 * world, which may refuse it (struct sim_world, no_memory). The machine itself, its disk and its connections allocate
 * through this header, and always succeed.
 *
 * Memory    free() for all of it.
 * Threads   one.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true, with errno set, if this allocation of the store fails. caller: a code address in
 * the function that allocates. */
bool sim_is_short(const void *caller);

/* Never returns NULL: ends the program if memory cannot be allocated. */
void *sim_malloc(size_t bytes);
void *sim_calloc(size_t n, size_t bytes);
void *sim_reallocarray(void *old, size_t n, size_t bytes);

#endif
