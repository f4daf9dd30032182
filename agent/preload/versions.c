/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that libc also has in an older version, with different code: the condition variables of programs linked before glibc
 * 2.3.2 are one pointer large, and today's code would write beyond them. A wrapper serves the newest version only; a call of
 * an older version comes here, is passed on to libc and is not traced. So is a call without a version, of an object that was
 * linked without libc, or with another library that has the name, too: it reaches libc's oldest version, or that library,
 * as without us.
 *
 * The build lists the functions: OLD(identifier, name, version). All have up to six parameters, none of them a floating-point
 * number or a structure. */
#include "agent/preload/lookup.h"
#include "agent/preload/preload.h"

typedef long old_call(long a, long b, long c, long d, long e, long f);

static struct {
#define OLD(id, name, version) old_call *id;
#include "versions.def"
#undef OLD
  old_call *none; /* for a libc without such functions */
} real;

void ta_versions_find(void) {
#define OLD(id, name, version) { #name, (void **)&real.id, version },
  const struct ta_wanted wanted[] = {
#include "versions.def"
    { "none", (void **)&real.none, "none" },
  };
#undef OLD

  ta_lookup_next(wanted, sizeof wanted / sizeof *wanted - 1);
}

#define OLD(id, name, version)                                                                     \
  TA_API old_call ta_old_##id;                                                                     \
  __asm__(".symver ta_old_" #id "," #name "@" version);                                            \
  long ta_old_##id(long a, long b, long c, long d, long e, long f) {                               \
    if (TB_UNLIKELY(__atomic_load_n(&real.id, __ATOMIC_ACQUIRE) == NULL)) ta_versions_find();      \
    return real.id(a, b, c, d, e, f);                                                              \
  }
#include "versions.def"
