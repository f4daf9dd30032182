/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preload/lookup.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#define IS_HIDDEN_VERSION 0x8000

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The symbols of an object's dynamic section. */
struct object {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols;
  const char *strings;
  const ElfW(Versym) * versions; /* may be NULL */
  const ElfW(Verdef) * defined;  /* names of the versions; may be NULL */
  const uint32_t *gnu_hash, *hash;
};

static uint32_t gnu_hash_of(const char *text) {
  uint32_t hash = 5381;

  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) hash = hash * 33 + *c;
  return hash;
}

static uint32_t hash_of(const char *text) {
  uint32_t hash = 0;

  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
    hash = (hash << 4) + *c;
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  return hash;
}

/* glibc replaces the offsets in a dynamic section by addresses, unless the section is read-only. */
static const void *address_in(const struct link_map *map, ElfW(Addr) value) {
  return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static struct object object_of(const struct link_map *map) {
  struct object o = { .base = map->l_addr };

  for (const ElfW(Dyn) *d = map->l_ld; d != NULL && d->d_tag != DT_NULL; d++) switch (d->d_tag) {
    case DT_SYMTAB: o.symbols = address_in(map, d->d_un.d_ptr); break;
    case DT_STRTAB: o.strings = address_in(map, d->d_un.d_ptr); break;
    case DT_VERSYM: o.versions = address_in(map, d->d_un.d_ptr); break;
    case DT_VERDEF: o.defined = address_in(map, d->d_un.d_ptr); break;
    case DT_GNU_HASH: o.gnu_hash = address_in(map, d->d_un.d_ptr); break;
    case DT_HASH: o.hash = address_in(map, d->d_un.d_ptr); break;
    default: break;
    }
  return o;
}

/* Returns the number of a version in the object, or 0 if the object does not have it. */
static ElfW(Versym) number_of(const struct object *o, const char *version) {
  const ElfW(Verdef) *d = o->defined;

  while (d != NULL) {
    const ElfW(Verdaux) *name = (const void *)((const char *)d + d->vd_aux);
    if (strcmp(o->strings + name->vda_name, version) == 0) return d->vd_ndx;
    d = d->vd_next == 0 ? NULL : (const void *)((const char *)d + d->vd_next);
  }
  return 0;
}

/* Decides as the loader does: a version that is not the default is found only by its name; a symbol without a version
 * matches every version. */
static bool is_version(const struct object *o, uint32_t at, const char *version) {
  ElfW(Versym) has = o->versions != NULL ? o->versions[at] : VER_NDX_GLOBAL;

  if (version == NULL) return has != VER_NDX_LOCAL && (has & IS_HIDDEN_VERSION) == 0;
  if (has == VER_NDX_GLOBAL) return true;
  return has != VER_NDX_LOCAL && (has & ~IS_HIDDEN_VERSION) == number_of(o, version);
}

static bool is_wanted(const struct object *o, uint32_t at, const struct ta_wanted *wanted) {
  const ElfW(Sym) *s = &o->symbols[at];
  unsigned type = ELF64_ST_TYPE(s->st_info), binding = ELF64_ST_BIND(s->st_info);

  if (s->st_shndx == SHN_UNDEF || s->st_value == 0) return false;
  if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) return false;
  if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) return false;
  return strcmp(o->strings + s->st_name, wanted->name) == 0 && is_version(o, at, wanted->version);
}

/* The table has four words, a Bloom filter of address-sized words, buckets, and a chain entry for each symbol from `first`
 * on; the lowest bit of an entry ends the chain. */
static const ElfW(Sym) *
    find_by_gnu_hash(const struct object *o, const struct ta_wanted *wanted, uint32_t hash) {
  enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };
  uint32_t buckets = o->gnu_hash[0], first = o->gnu_hash[1], words = o->gnu_hash[2];
  uint32_t shift = o->gnu_hash[3];
  const ElfW(Addr) *filter = (const void *)(o->gnu_hash + 4);
  const uint32_t *bucket = (const void *)(filter + words), *chain = bucket + buckets;

  if (buckets == 0 || words == 0) return NULL;
  ElfW(Addr) word = filter[hash / WORD_BITS % words];
  if ((word >> hash % WORD_BITS & word >> (hash >> shift) % WORD_BITS & 1) == 0) return NULL;
  uint32_t at = bucket[hash % buckets];
  if (at < first) return NULL;
  for (;; at++) {
    uint32_t entry = chain[at - first];
    if ((entry | 1) == (hash | 1) && is_wanted(o, at, wanted)) return &o->symbols[at];
    if ((entry & 1) != 0) return NULL;
  }
}

static const ElfW(Sym) * find_by_hash(const struct object *o, const struct ta_wanted *wanted) {
  uint32_t buckets = o->hash[0];
  const uint32_t *bucket = o->hash + 2, *chain = bucket + buckets;

  if (buckets == 0) return NULL;
  for (uint32_t at = bucket[hash_of(wanted->name) % buckets]; at != STN_UNDEF; at = chain[at])
    if (is_wanted(o, at, wanted)) return &o->symbols[at];
  return NULL;
}

/* Calls a resolver with the arguments that the loader passes; on x86-64 there are none. */
static void *resolve_indirect(ElfW(Addr) at) {
#if defined __aarch64__
  struct {
    unsigned long size, hwcap, hwcap2;
  } more = { sizeof more, getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };
  const uint64_t more_follow = UINT64_C(1) << 62;

  return ((void *(*)(uint64_t, const void *))at)(more.hwcap | more_follow, &more);
#else
  return ((void *(*)(void))at)();
#endif
}

static void *find_in(const struct object *o, const struct ta_wanted *wanted, uint32_t hash) {
  const ElfW(Sym) *found =
      o->gnu_hash != NULL ? find_by_gnu_hash(o, wanted, hash) : find_by_hash(o, wanted);

  if (found == NULL) return NULL;
  ElfW(Addr) at = o->base + found->st_value;
  return ELF64_ST_TYPE(found->st_info) == STT_GNU_IFUNC ? resolve_indirect(at) : (void *)at;
}

/* Returns the number of names that are still not found. */
static size_t find_from(const struct link_map *map, const struct ta_wanted *wanted,
                        const uint32_t *hashes, size_t n) {
  ElfW(Addr) vdso = getauxval(AT_SYSINFO_EHDR);
  size_t left = n;

  for (; map != NULL && left > 0; map = map->l_next) {
    if (map->l_ld == _DYNAMIC || (vdso != 0 && map->l_addr == vdso)) continue;
    struct object o = object_of(map);
    if (o.symbols == NULL || o.strings == NULL || (o.gnu_hash == NULL && o.hash == NULL)) continue;
    left = 0;
    for (size_t i = 0; i < n; i++) {
      if (__atomic_load_n(wanted[i].to, __ATOMIC_RELAXED) != NULL) continue;
      void *found = find_in(&o, &wanted[i], hashes[i]);
      if (found != NULL) __atomic_store_n(wanted[i].to, found, __ATOMIC_RELEASE);
      left += found == NULL;
    }
  }
  return left;
}

/* Namespaces of dlmopen() have link-map lists of their own, which glibc chains since 2.35. */
static const struct r_debug *namespace_after(const struct r_debug *here) {
#if __GLIBC_PREREQ(2, 35)
  if (here->r_version >= 2)
    return (const struct r_debug *)((const struct r_debug_extended *)here)->r_next;
#else
  (void)here;
#endif
  return NULL;
}

void ta_lookup_next(const struct ta_wanted *wanted, size_t n) {
  const struct link_map *first = _r_debug.r_map, *own = NULL;
  uint32_t hashes[TA_LOOKUP_MAX];

  for (size_t i = 0; i < n; i++) hashes[i] = gnu_hash_of(wanted[i].name);
  for (const struct r_debug *space = &_r_debug; space != NULL && own == NULL;
       space = namespace_after(space)) {
    for (own = space->r_map; own != NULL && own->l_ld != _DYNAMIC;) own = own->l_next;
    if (own != NULL) first = space->r_map;
  }
  if (own != NULL && find_from(own->l_next, wanted, hashes, n) == 0) return;
  find_from(first, wanted, hashes, n);
}

bool ta_lookup_has_object(const char *file) {
  for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
    const char *slash = map->l_name != NULL ? strrchr(map->l_name, '/') : NULL;
    if (slash != NULL && strcmp(slash + 1, file) == 0) return true;
  }
  return false;
}
