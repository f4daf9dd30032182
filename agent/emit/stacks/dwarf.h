/* SPDX-License-Identifier: Apache-2.0 */
/* Finds function, file and line of an address, from symbol tables and debug information.
 *
 * elfutils' libdw does the work: it reads separate debug files, found by build id, and compressed sections. libdw is loaded
 * when the first name is needed, so programs without stacks do not load it. If libdw is not installed, stacks contain
 * modules and offsets (docs/decisions/007-stacks-and-samples.md).
 *
 *   struct ta_dwarf d = { 0 };
 *   while (more) if (ta_dwarf_find(&d, &module, pc, &found)) ...
 *   ta_dwarf_close(&d);
 *
 * No names are read from a file whose build id differs from the module's in memory.
 *
 * Memory    libdw's, from malloc(): some MB for a large program, freed by close.
 * Threads   one. No time limit: 1 ms to 1 s for the first address of a module.
 * Errors    find returns false if no name is known.
 */
#ifndef TA_EMIT_STACKS_DWARF_H
#define TA_EMIT_STACKS_DWARF_H

#include "agent/emit/stacks/modules.h"

struct ta_dwarf {
  void *dwfl; /* libdw's */
};

struct ta_found {
  const char *function; /* or variable, as in source code; lent until the next find */
  const char *file;     /* NULL: not known */
  unsigned line;
  char room[1024]; /* holds a demangled or shortened name */
};

/* Loads libdw, once. Returns false if it is not installed. Calls the loader: no fork may be under way. */
bool ta_dwarf_load(void);
/* Call after load() returned true. May take long; holds no lock that a forked child may need. */
bool ta_dwarf_find(struct ta_dwarf *d, const struct ta_module *module, uint64_t pc,
                   struct ta_found *out);
void ta_dwarf_close(struct ta_dwarf *d);

#endif
