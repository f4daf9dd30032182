/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions that follow this library in load order: dlsym(RTLD_NEXT, name), but without locks and allocations.
 *
 * An allocator that is preloaded before us calls our wrappers during its first allocation. dlsym() allocates, and takes the
 * loader's lock: either would call the allocator again from inside itself. So the loader's data is read directly: the list
 * of link maps, and each object's hash table, symbols and versions.
 *
 * The results are those of dlsym(), or of dlvsym() if a version is given: the first object after this one in load order wins;
 * of several versions the default one counts; for an indirect function (STT_GNU_IFUNC) the resolver's result is returned.
 * The vdso is left out. If this library was not preloaded but opened later, no object follows it: then all objects of its
 * namespace are searched, from the first on.
 *
 * Memory    none.
 * Threads   any. Objects loaded at the program's start are never unloaded; libc, which has nearly all names, is one of them.
 * Cost      some 20 us for all names of calls.def: an object's dynamic section is read once, and for most names a bit of its
 *           Bloom filter shows that they are not there.
 */
#ifndef TA_PRELOAD_LOOKUP_H
#define TA_PRELOAD_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

struct ta_wanted {
  const char *name;
  void **to;           /* result; a name whose *to is not NULL is not looked up again */
  const char *version; /* NULL: the default version */
};

enum { TA_LOOKUP_MAX = 512 }; /* names per call */

/* Leaves NULL for a name that no object has. */
void ta_lookup_next(const struct ta_wanted *wanted, size_t n);
/* Returns true if the program has loaded an object with that file name. */
bool ta_lookup_has_object(const char *file);

#endif
