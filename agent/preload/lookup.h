/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what names mean behind this library: dlsym(RTLD_NEXT, name) that takes no lock and allocates nothing.
 *
 * An allocator that is preloaded before us calls our wrappers while it allocates for the first time. dlsym()
 * allocates, and takes the loader's lock: either would call the allocator again from inside of it. So the objects
 * are read as the loader left them: the list of link maps, each with its hash table, its symbols and their versions.
 *
 * The answers are those of dlsym(), and of dlvsym() where a version is wanted: the first object after this one in load order wins, of several versions the
 * default one counts, and of an indirect function (STT_GNU_IFUNC) what its resolver answers. The vdso takes no part.
 * A library that was not preloaded but opened later has nothing behind it: then all objects of its namespace count,
 * from the first on.
 *
 * Memory    none.
 * Threads   any. Objects that come with the program are never unloaded, and libc, which has nearly all names, is one of them.
 * Cost      some 20 us for all names of calls.def: an object's dynamic section is read once, and for most names a bit of its
 *           Bloom filter says that they are not there.
 */
#ifndef TA_PRELOAD_LOOKUP_H
#define TA_PRELOAD_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

struct ta_wanted {
  const char *name;
  void **to;           /* not NULL: it was found already, and stays */
  const char *version; /* NULL: the one that dlsym() finds */
};

enum { TA_LOOKUP_MAX = 512 }; /* names at once */

/* A name that no object has stays NULL. */
void ta_lookup_next(const struct ta_wanted *wanted, size_t n);
/* The program has that file loaded. */
bool ta_lookup_has_object(const char *file);

#endif
