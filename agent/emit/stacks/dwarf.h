/* SPDX-License-Identifier: Apache-2.0 */
/* The names of addresses, out of symbol tables and debug information: function, file and line.
 *
 * elfutils' libdw does the work: it knows separate debug files, by build id and by link, and compressed sections. It is
 * loaded when the first name is needed, so that a program that wants no stacks does not carry it, and one on a machine
 * without it still has its stacks, as module and offset (docs/decisions/007-stacks-and-samples.md).
 *
 *   struct ta_dwarf d = { 0 };
 *   while (more) if (ta_dwarf_find(&d, &module, pc, &found)) ...
 *   ta_dwarf_close(&d);
 *
 * A file that is not the one in memory any more (by its build id) names nothing.
 *
 * Memory    libdw's, from malloc(): some MB for a large program, given back by close.
 * Threads   one. Takes as long as it takes: 1 ms to 1 s for the first address of a module.
 * Errors    false: no name is known.
 */
#ifndef TA_EMIT_STACKS_DWARF_H
#define TA_EMIT_STACKS_DWARF_H

#include "agent/emit/stacks/modules.h"

struct ta_dwarf {
  void *dwfl; /* libdw's */
};

struct ta_found {
  const char *function; /* or variable, as people write it; lent until the next find */
  const char *file;     /* NULL: not known */
  unsigned line;
  char room[1024]; /* for a name that was not read as it stands */
};

/* libdw, once; false: it is not there. Asks the loader: no fork may be under way. */
bool ta_dwarf_load(void);
/* It is loaded. May take long, and holds no lock that a forked child could want. */
bool ta_dwarf_find(struct ta_dwarf *d, const struct ta_module *module, uint64_t pc,
                   struct ta_found *out);
void ta_dwarf_close(struct ta_dwarf *d);

#endif
